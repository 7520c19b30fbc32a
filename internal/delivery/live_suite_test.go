package delivery_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/theloop-dev/the-loop/internal/delivery"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/harness/hook"
	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

// bin holds the built programs.
var bin string

var _ = BeforeSuite(func() {
	bin = ground.Programs(GinkgoTB(), "./cmd/loop-shim", "./test/fakeharness")
})

const (
	frameBegin, frameEnd = "\x1b[200~", "\x1b[201~"
	// patience is more than a busy machine needs.
	patience = time.Minute
)

// live is a session as a host has it: the demo harness with the hooks of its adapter, in a
// pane of a terminal server of its own.
type live struct {
	dir, socket string
	server      *tmux.Server
	target      tmux.Target
	log         faketest.Log
	adapter     harness.Adapter
	// traits are the adapter's, and may be changed.
	traits harness.Traits

	conversation string
	journal      string
	mark         hook.Mark
	offset       int64
	state        harness.State
	said         int
}

// host starts a demo harness that behaves as said, and waits until it is at its prompt.
func host(behaviour ...string) *live {
	GinkgoHelper()
	// Short, because a socket's path is at most 107 bytes.
	dir, err := os.MkdirTemp("/tmp", "ld")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Eventually(os.RemoveAll).WithArguments(dir).Should(Succeed()) }) // a hook may still write
	l := &live{dir: dir, socket: filepath.Join(dir, "s"), log: faketest.Log(filepath.Join(dir, "log")), journal: filepath.Join(dir, "journal")}
	l.adapter, err = harness.Get("claude")
	Expect(err).NotTo(HaveOccurred())
	l.traits = l.adapter.Traits()
	l.traits.TakenWithin = patience
	l.server, err = tmux.New(tmux.Config{Socket: l.socket, Timeout: 20 * time.Second})
	Expect(err).NotTo(HaveOccurred())
	epoch, err := l.server.Ensure(context.Background())
	Expect(err).NotTo(HaveOccurred())
	uid := uuid.NewString()
	DeferCleanup(func() {
		Expect(l.server.Shutdown(context.Background(), epoch)).To(Succeed())
		_, err := tmux.EndProcesses(context.Background(), uid, 0)
		Expect(err).NotTo(HaveOccurred())
	})
	l.spawn(uid, behaviour)
	Eventually(func() bool { return l.look().Ready }, patience).Should(BeTrue())
	return l
}

func (l *live) spawn(uid string, behaviour []string) {
	GinkgoHelper()
	l.conversation = uuid.NewString()
	launched, err := l.adapter.Command(harness.LaunchOptions{
		Binary: filepath.Join(bin, "fakeharness"), Dir: l.dir, ConversationID: l.conversation, FileDir: l.dir,
		HookCommand: []string{filepath.Join(bin, "loop-shim"), "hook", "--journal", l.journal, "--socket", filepath.Join(l.dir, "poke"), "--poke", "x"},
	})
	Expect(err).NotTo(HaveOccurred())
	argv := append([]string{"/usr/bin/env", "FAKEHARNESS_HOME=" + l.dir, "FAKEHARNESS_LOG=" + string(l.log),
		"FAKEHARNESS_BEHAVIOUR=" + strings.Join(behaviour, ",")}, launched.Argv...)
	sp, err := l.server.Spawn(context.Background(), tmux.SpawnRequest{Name: "loop-live", UID: uid, Generation: "1", Dir: l.dir, Argv: argv})
	Expect(err).NotTo(HaveOccurred())
	l.target = tmux.Target{UID: uid, SessionID: sp.SessionID, PaneID: sp.PaneID, Epoch: sp.Epoch}
}

// look brings what the hooks told up to date.
func (l *live) look() harness.State {
	GinkgoHelper()
	notes, next, err := hook.Read(l.journal, l.offset)
	Expect(err).NotTo(HaveOccurred())
	for _, n := range notes {
		l.mark.Number++
		n.Mark = l.mark
		l.state = l.adapter.Observe(l.state, n)
	}
	l.offset = next
	l.state = l.adapter.(harness.StateFile).Recheck(l.state, harness.Process{
		ConversationID: l.conversation,
		Lookup: func(key string) string {
			return map[string]string{"CLAUDE_CONFIG_DIR": l.dir, "LOOP_UID": l.target.UID}[key]
		},
	})
	return l.state
}

// box reads the input box.
func (l *live) box() harness.Draft {
	GinkgoHelper()
	screen, err := l.server.Screen(context.Background(), l.target)
	Expect(err).NotTo(HaveOccurred())
	return l.adapter.(harness.Drafter).Draft(harness.Screen(screen))
}

// screen is what a person sees.
func (l *live) screen() string {
	GinkgoHelper()
	text, err := l.server.Capture(context.Background(), l.target, 0)
	Expect(err).NotTo(HaveOccurred())
	return text
}

// person runs tmux as somebody at a terminal does.
func (l *live) person(args ...string) string {
	GinkgoHelper()
	out, err := exec.Command("tmux", append([]string{"-N", "-u", "-S", l.socket}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return strings.TrimSuffix(string(out), "\n")
}

// sending is one message under way.
type sending struct {
	*live
	id, text string
	after    hook.Mark
	step     delivery.Step
}

// say begins a message.
func (l *live) say(text string) *sending {
	l.said++
	return &sending{live: l, id: "m" + strconv.Itoa(l.said), text: text, after: l.mark}
}

// advance takes the message one step further, from what is seen now, as the agent does.
func (s *sending) advance() delivery.Step {
	GinkgoHelper()
	snap, err := s.server.Snapshot(context.Background())
	Expect(err).NotTo(HaveOccurred())
	found := snap.ByUID(s.target.UID)
	Expect(found).To(HaveLen(1))
	looks := func(is func(harness.Drafter, harness.Screen, string) bool) bool {
		screen, err := s.server.Screen(context.Background(), s.target)
		Expect(err).NotTo(HaveOccurred())
		return is(s.adapter.(harness.Drafter), harness.Screen(screen), s.text)
	}
	step, err := delivery.Advance(context.Background(), s.server, delivery.Request{
		ID: s.id, Text: s.text, Digest: hook.Digest(s.text), After: s.after, Target: s.target, Session: found[0],
		State: s.look(), Traits: s.traits, WhileBusy: true, Progress: s.step.Progress,
		Stands: func() bool { return looks(harness.Holds) },
		Empty:  func() bool { return s.box() == harness.DraftEmpty },
		Led:    func() bool { return looks(harness.Led) },
	}, time.Now())
	if errors.Is(err, tmux.ErrUnknown) {
		return s.step // as the agent: later
	}
	Expect(err).NotTo(HaveOccurred())
	s.step = step
	return step
}

// phase is advance for Eventually.
func (s *sending) phase() delivery.Phase { return s.advance().Phase }

// ends takes the message to its end.
func (s *sending) ends() delivery.Step {
	GinkgoHelper()
	Eventually(s.phase, patience, 10*time.Millisecond).Should(BeElementOf(delivery.Submitted, delivery.Typed, delivery.Lost),
		func() string { return s.step.Detail + "\n" + s.screen() })
	return s.step
}

// deliver takes a message to its end.
func (l *live) deliver(text string) delivery.Step {
	GinkgoHelper()
	return l.say(text).ends()
}

// heard is what the harness was sent: every byte.
func (l *live) heard() string { return string(l.log.Input()) }

// typed is how texts arrive that are each in one frame and submitted by one carriage
// return.
func typed(texts ...string) string {
	var b strings.Builder
	for _, t := range texts {
		b.WriteString(frameBegin + t + frameEnd + "\r")
	}
	return b.String()
}

// submitted matches a session whose harness took exactly these texts.
func submitted(texts ...string) types.GomegaMatcher {
	return WithTransform(func(l *live) []string { return l.log.Submits() }, Equal(texts))
}
