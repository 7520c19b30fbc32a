package main_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/harness/hook"
	"github.com/theloop-dev/the-loop/internal/harness/launch"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
)

func itoa(n int) string { return strconv.Itoa(n) }

// hosted is a session as the agent keeps one: the adapter's command line, started
// by the pane process, watched through the journal.
type hosted struct {
	*pane
	adapter      harness.Adapter
	conversation string
	home         string
	log          faketest.Log
	journal      string
	offset       int64
	state        harness.State
}

// host starts the claude adapter's launch with the fakeharness in claude's place.
func host(home, conversation string, resume bool, change func(*harness.LaunchOptions, *launch.File)) *hosted {
	GinkgoHelper()
	adapter, err := harness.Get("claude")
	Expect(err).NotTo(HaveOccurred())
	h := &hosted{adapter: adapter, conversation: conversation, home: home, log: faketest.Log(filepath.Join(home, "log")), journal: filepath.Join(GinkgoT().TempDir(), "journal")}
	o := harness.LaunchOptions{
		Binary: fakeharness, Dir: home, ConversationID: conversation, Resume: resume,
		HookCommand: []string{shim, "hook", "--journal", h.journal, "--socket", filepath.Join(home, "s"), "--poke", "uid-1"},
	}
	f := launch.File{Env: []string{"FAKEHARNESS_HOME=" + home, "FAKEHARNESS_LOG=" + string(h.log)}, Dir: home}
	if change != nil {
		change(&o, &f)
	}
	cmd, err := adapter.Command(o)
	Expect(err).NotTo(HaveOccurred())
	f.Argv, f.Env = cmd.Argv, append(f.Env, cmd.Env...)
	h.pane = run(f)
	return h
}

// look folds what is new in the journal into the state.
func (h *hosted) look() harness.State {
	GinkgoHelper()
	notes, next, err := hook.Read(h.journal, h.offset)
	Expect(err).NotTo(HaveOccurred())
	for _, n := range notes {
		h.state = h.adapter.Observe(h.state, n)
	}
	h.offset = next
	if f, ok := h.adapter.(harness.StateFile); ok && !h.state.Ready && !h.state.Started.IsZero() {
		h.state = f.Recheck(h.state, h.process())
	}
	return h.state
}

// process is the harness for Recheck.
func (h *hosted) process() harness.Process {
	return harness.Process{ConversationID: h.conversation, Lookup: func(key string) string {
		return map[string]string{"CLAUDE_CONFIG_DIR": h.home, "LOOP_UID": "uid-1"}[key]
	}}
}

// deliver pastes a text in a frame and submits it.
func (h *hosted) deliver(text string) {
	GinkgoHelper()
	Expect(h.Paste(text)).To(Succeed())
	h.types("\r")
}

func took(text string) func(harness.State) bool {
	return func(s harness.State) bool {
		for _, t := range s.Taken {
			if t.Digest == hook.Digest(text) {
				return true
			}
		}
		return false
	}
}

var _ = Describe("a hosted session, from the adapter's command to what its hooks tell", func() {
	var (
		home string
		id   string
	)
	ready := func(s harness.State) bool { return s.Ready && s.Activity == harness.ActivityIdle }
	BeforeEach(func() {
		var err error
		home, err = os.MkdirTemp("", "hosted")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, home)
		id = harness.NewConversationID()
	})

	It("becomes ready, takes a prompt, answers, ends and resumes", func() {
		ctx, cancel := context.WithCancel(context.Background())
		pokes, err := hook.Listen(ctx, filepath.Join(home, "s"))
		Expect(err).NotTo(HaveOccurred())

		h := host(home, id, false, nil)
		Eventually(h.look).Should(Satisfy(ready))
		Expect(h.state.ConversationID).To(Equal(id))
		Expect(h.state.Resumed).To(BeFalse())
		Eventually(pokes).Should(Receive(Equal("uid-1")))

		text := "[event 12]\nline two\twith a tab — grüße 漢字\n[end]"
		h.deliver(text)
		Eventually(h.look).Should(Satisfy(took(text)))
		Eventually(h.look).Should(Satisfy(ready), "the turn ended")
		Expect(h.state.TranscriptPath).To(BeAnExistingFile())

		h.signal(15)
		Expect(h.status().ExitStatus()).To(Equal(143))
		Expect(h.look().Ended).To(BeTrue())
		Expect(h.state.Ready).To(BeFalse())

		h = host(home, id, true, nil)
		Eventually(h.look).Should(Satisfy(ready))
		Expect(h.state.Resumed).To(BeTrue())
		Expect(h.state.ConversationID).To(Equal(id))
		h.shows("This is turn 1")
		h.deliver("again")
		h.shows("This is turn 2")
		cancel()
		Eventually(pokes).Should(BeClosed())
	})

	It("shows a permission dialog as such, and what a person answers", func() {
		h := host(home, id, false, nil)
		Eventually(h.look).Should(Satisfy(ready))
		h.deliver("fake: permission-dialog=Edit")
		Eventually(func() harness.Activity { return h.look().Activity }).Should(Equal(harness.ActivityAwaitingInput))
		Expect(h.state.WaitingFor).To(Equal("permission for Edit"))
		Eventually(h.log.Count).WithArguments("dialog").Should(Equal(1))
		h.types("\r")
		Eventually(h.look).Should(Satisfy(ready))
		Expect(h.log.Count("tool-ran")).To(Equal(1))
	})

	It("answers a permission dialog by its policy, so that none opens", func() {
		for _, p := range []harness.Permissions{harness.PermissionsDeny, harness.PermissionsAllow} {
			h := host(home, harness.NewConversationID(), false, func(o *harness.LaunchOptions, f *launch.File) {
				o.Permissions = p
				f.Env = append(f.Env, "FAKEHARNESS_LOG="+home+"/log"+string(p))
			})
			h.log = faketest.Log(home + "/log" + string(p))
			Eventually(h.look).Should(Satisfy(ready))
			h.deliver("fake: permission-dialog")
			Eventually(h.look).Should(Satisfy(took("fake: permission-dialog")))
			Eventually(h.look).Should(Satisfy(ready))
			Expect(h.log.Count("dialog")).To(BeZero())
			Expect(h.log.Count("tool-ran")).To(Equal(map[harness.Permissions]int{harness.PermissionsDeny: 0, harness.PermissionsAllow: 1}[p]))
		}
	})

	It("shows by its session file what no hook tells: an interrupted turn", func() {
		h := host(home, id, false, nil)
		Eventually(h.look).Should(Satisfy(ready))
		h.deliver("fake: think=600000")
		Eventually(func() harness.Activity { return h.look().Activity }).Should(Equal(harness.ActivityBusy))
		recheck := func() harness.Activity {
			return h.adapter.(harness.StateFile).Recheck(h.look(), h.process()).Activity
		}
		Consistently(recheck, "300ms").Should(Equal(harness.ActivityBusy))
		h.types("\x1b")
		Eventually(recheck).Should(Equal(harness.ActivityIdle))
		Expect(h.look().Activity).To(Equal(harness.ActivityBusy), "by the hooks alone")
	})

	It("follows a conversation that got another id", func() {
		h := host(home, id, false, nil)
		Eventually(h.look).Should(Satisfy(ready))
		h.deliver("/clear")
		Eventually(func() string { return h.look().ConversationID }).ShouldNot(Equal(id))
		Expect(h.state.Ready).To(BeTrue())
		Expect(harness.ValidConversationID(h.state.ConversationID)).To(BeTrue())
	})

	It("is never ready behind a startup dialog, and says when it ended there", func() {
		h := host(home, id, false, func(_ *harness.LaunchOptions, f *launch.File) {
			f.Env = append(f.Env, "FAKEHARNESS_BEHAVIOUR=trust-dialog")
		})
		Eventually(h.log.Count).WithArguments("dialog").Should(Equal(1))
		Expect(h.look().Ready).To(BeFalse())
		h.types("\r")
		Expect(h.status().ExitStatus()).To(Equal(1))
		Expect(h.look().Ended).To(BeTrue())
	})

	It("ends a resume that is lost at once and says why on the screen", func() {
		h := host(home, id, true, func(_ *harness.LaunchOptions, f *launch.File) {
			f.Env = append(f.Env, "FAKEHARNESS_BEHAVIOUR=resume-delay=1")
		})
		Expect(h.status().ExitStatus()).To(Equal(1))
		Expect(h.Output()).To(ContainSubstring("No conversation found with session ID: " + id))
		Expect(h.look()).To(Equal(harness.State{}))
	})
})
