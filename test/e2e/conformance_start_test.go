package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// behindTmux gives the agent of h a tmux that does what script says before a terminal
// session is created, as instead does. Every attempt is a line of the file spawns in $dir.
func behindTmux(h *testenv.Host, script string) {
	GinkgoHelper()
	instead(h, " new-session -d -P ", `echo attempt >>"$dir/spawns"
	`+script)
}

// instead gives the agent of h a tmux that does what script says before it is asked for
// something with these words in it, and is tmux itself otherwise. script is bash: "$@" are
// the arguments, $tmux is tmux on the host's server, $dir the host's directory. args are
// further ones of the agent.
func instead(h *testenv.Host, words, script string, args ...string) {
	GinkgoHelper()
	tmux, err := exec.LookPath("tmux")
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(h.Dir, "tmux-between")
	Expect(os.WriteFile(path, []byte(fmt.Sprintf(`#!/bin/bash
tmux=(%[1]q -N -u -S %[2]q)
dir=%[3]q
case " $* " in *%[5]q*)
	%[4]s
esac
exec %[1]q "$@"
`, tmux, h.Socket, h.Dir, script, words)), 0o700)).To(Succeed())
	// The terminal server is started by the agent as it was.
	Eventually(func() error { _, err := os.Stat(h.Socket); return err }).Should(Succeed())
	h.Agent.Kill()
	h.StartAgent(append([]string{"--tmux", path}, args...)...)
}

// attempts counts the terminal sessions that the agent behind behindTmux asked for.
func attempts(h *testenv.Host) int {
	b, err := os.ReadFile(filepath.Join(h.Dir, "spawns"))
	if err != nil {
		return 0
	}
	return strings.Count(string(b), "\n")
}

// rewrite changes what the record of a session says, as damage or an older version does.
// The agent has to be away.
func rewrite(s testenv.Session, change func(*api.HostedSessionStatus)) {
	GinkgoHelper()
	Eventually(func() error {
		env.Get(s)
		change(s.HostedStatus())
		return env.Client.Status().Update(context.Background(), s)
	}).Should(Succeed())
}

// withoutTarget is a record that does not know its terminal.
func withoutTarget(st *api.HostedSessionStatus) {
	st.TmuxTarget, st.PaneID, st.ServerEpoch, st.StartedAt, st.Launch = "", "", "", nil, nil
}

// aTurn speaks to a session and waits until the answer is on disk, so that its
// conversation can be continued.
func aTurn(h *testenv.Host, s testenv.Session, text string) {
	GinkgoHelper()
	h.AwaitOutcome(h.Say(s, text), testenv.Submitted)
	Eventually(answered).WithArguments(h, text).Should(BeTrue())
}

// answered reports that a conversation on disk has an answer to a text.
func answered(h *testenv.Host, text string) bool {
	files, err := filepath.Glob(filepath.Join(h.Dir, "harness", "projects", "*", "*.jsonl"))
	Expect(err).NotTo(HaveOccurred())
	for _, f := range files {
		b, err := os.ReadFile(f)
		Expect(err).NotTo(HaveOccurred())
		if _, rest, found := strings.Cut(string(b), text); found && strings.Contains(rest, `"role":"assistant"`) {
			return true
		}
	}
	return false
}

// seenIn lists the processes whose arguments or environment hold a text.
func seenIn(text string) (found []string) {
	for _, what := range []string{"cmdline", "environ"} {
		files, err := filepath.Glob("/proc/[0-9]*/" + what)
		Expect(err).NotTo(HaveOccurred())
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), text) {
				found = append(found, f)
			}
		}
	}
	return found
}

// watched looks for a text in all processes until the returned function is called, which
// returns where it was seen.
func watched(text string) func() []string {
	stop, seen := make(chan struct{}), make(chan []string)
	go func() {
		defer GinkgoRecover()
		var all []string
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			all = append(all, seenIn(text)...)
			select {
			case <-tick.C:
			case <-stop:
				seen <- all
				return
			}
		}
	}()
	return func() []string { close(stop); return <-seen }
}

// longText is a text of a size that names a word all over.
func longText(word string, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%s line %d äöü 漢字\n", word, i)
	}
	return strings.TrimSpace(b.String())
}

var _ = Describe("a name that is taken at the very creation", func() {
	It("C016: by a live terminal of somebody's leads to no further attempt, says so, and leaves it alone", func() {
		h := env.NewDemoHost()
		behindTmux(h, `"${tmux[@]}" new-session -d -s loop-standing-quick sleep 1000 2>/dev/null`)
		s := h.Standing("quick")
		h.Await(s, api.ConditionReady, "False/SessionOccupied")
		Expect(attempts(h)).To(Equal(1))
		Consistently(func() int { return attempts(h) }, 6*time.Second).Should(Equal(1))
		Expect(h.Sessions()).To(HaveLen(1))
		Expect(h.Sessions()[0].UID).To(BeEmpty())
		Expect(h.Sessions()[0].Live()).To(BeTrue())
		Expect(h.Message(s, api.ConditionSessionRunning)).To(ContainSubstring("kill-session -t"))
	})

	It("C016: by what no listing shows leads to one more attempt and no third, and to a start when it is over", func() {
		h := env.NewDemoHost()
		Expect(os.WriteFile(filepath.Join(h.Dir, "taken"), nil, 0o600)).To(Succeed())
		behindTmux(h, `[ -e "$dir/taken" ] && { echo "duplicate session: it" >&2; exit 1; }`)
		s := h.WorkItem(16)
		h.Await(s, api.ConditionReady, "False/SpawnFailed")
		Expect(attempts(h)).To(Equal(2))
		Consistently(func() int { return attempts(h) }, 3*time.Second).Should(Equal(2))
		Expect(h.Message(s, api.ConditionReady)).To(ContainSubstring("duplicate session"))
		Expect(os.Remove(filepath.Join(h.Dir, "taken"))).To(Succeed())
		h.Ready(s)
		Expect(h.Sessions()).To(HaveLen(1))
		Expect(h.Events("started")).To(HaveLen(1))
	})
})

var _ = Describe("the first start of a session", func() {
	It("C015: goes on where tmux says that it could not clear the dead terminal of the name, which is gone all the same", func() {
		h := env.NewDemoHost()
		instead(h, "kill-session -t", `"${tmux[0]}" "$@" >/dev/null; echo cleared >>"$dir/clearings"; echo "server exited unexpectedly" >&2; exit 1`)
		name := "loop-github-octo-repo-15"
		Eventually(func() string { return h.Tmux("show-options", "-gwv", "remain-on-exit") }).Should(Equal("on\n"))
		h.Tmux("new-session", "-d", "-s", name, "/bin/sh", "-c", "exit 0")
		Eventually(h.Sessions).Should(ContainElement(And(HaveField("Name", name), HaveField("Panes", ConsistOf(HaveField("Dead", true))))))
		s := h.WorkItem(15)
		h.Ready(s)
		Expect(filepath.Join(h.Dir, "clearings")).To(BeARegularFile())
		Expect(get(s).Status.TmuxTarget).To(Equal(name))
		Expect(h.Sessions()).To(HaveLen(1))
		Expect(h.Events("started")).To(HaveLen(1))
	})

	It("C017: goes on, with a warning, where tmux does not take that this terminal is to keep its dead pane", func() {
		h := env.NewDemoHost()
		behindTmux(h, `set -- "${@/#remain-on-exit/no-such-option}"`)
		s := h.Standing("old-tmux")
		h.Ready(s)
		aTurn(h, s, "are you there?")
		Expect(h.Sessions()).To(HaveLen(1))
		Expect(h.Events("started")).To(HaveLen(1))
		Expect(string(h.Agent.Err.Contents())).To(MatchRegexp(`not all of its options set.*no-such-option`))
		By("keeping the pane all the same, for the server does so")
		h.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(h.Pane(s).Dead).To(BeTrue())
	})

	It("C017: goes on, with a warning, where the server takes the option for no terminal, and then without dead panes", func() {
		h := env.NewDemoHost()
		// tmux itself refuses it under another name, which its answer does not tell.
		instead(h, "remain-on-exit", `{ err=$("${tmux[0]}" "${@//remain-on-exit/remain-on-exit-x}" 2>&1 >&9); code=$?; } 9>&1
	[ -z "$err" ] || echo "${err//remain-on-exit-x/remain-on-exit}" >&2
	exit $code`)
		h.Tmux("set-option", "-gw", "remain-on-exit", "off") // the agent was there before
		s := h.Standing("refusing-tmux")
		h.Ready(s)
		aTurn(h, s, "are you there?")
		By("starting it again when it ends, though its terminal is gone with it")
		pid := h.HarnessPID(s)
		h.KillHarness(s)
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		h.Ready(s)
		Expect(h.HarnessPID(s)).NotTo(Equal(pid))
		By("stopping it, which leaves nothing")
		h.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(h.Sessions()).To(BeEmpty())
		Expect(strings.Count(string(h.Agent.Err.Contents()), "refuses the option remain-on-exit: ")).To(Equal(1))
	})

	It("C019: brings a first prompt of 40 KB whole, and shows it in the arguments and the environment of no process", func() {
		h := env.NewDemoHost()
		word := "prompt-of-" + h.Name
		text, seen := longText(word, 40<<10), watched(word)
		s := h.WorkItem(19, func(s *api.WorkItemSession) { s.Spec.Prompt = text })
		Eventually(h.Submits).WithArguments(word).Should(HaveLen(1))
		Expect(h.Submits(word)[0].Text).To(HaveSuffix(text))
		h.Ready(s)
		Expect(seen()).To(BeEmpty())
	})

	It("C019: brings a brief of 200 KB from a file whole, and shows it in no process either", func() {
		h := env.NewDemoHost()
		word := "brief-of-" + h.Name
		text, seen := longText(word, 200_000), watched(word)
		file := filepath.Join(h.Dir, "brief.txt")
		Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
		s := h.Standing("briefed", func(s *api.StandingSession) { s.Spec.PromptFile = file })
		Eventually(h.Submits).WithArguments(word).Should(HaveLen(1))
		Expect(h.Submits(word)[0].Text).To(HaveSuffix("\n---\n\n" + text))
		h.Ready(s)
		Expect(seen()).To(BeEmpty())
	})

	It("C020: happens once, however many ask for the item at the same moment, also when the agent ends meanwhile", func() {
		h := env.NewDemoHost()
		const items, askers = 4, 8
		var made [items]int
		var asking sync.WaitGroup
		var mu sync.Mutex
		for i := range items * askers {
			asking.Go(func() {
				defer GinkgoRecover()
				err := env.Client.Create(context.Background(), itemOf(h, i%items))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					made[i%items]++
					return
				}
				Expect(apierrors.IsAlreadyExists(err)).To(BeTrue(), "%v", err)
			})
		}
		for range 3 {
			timer := time.NewTimer(time.Duration(rand.IntN(1000)) * time.Millisecond)
			<-timer.C
			h.RestartAgent()
		}
		asking.Wait()
		for i := range items {
			s := itemOf(h, i)
			h.Ready(s)
			h.AwaitOutcome(h.Say(s, "are you there?"), testenv.Submitted)
			Expect(made[i]).To(Equal(1))
			Expect(h.Snapshot().ByUID(string(s.UID))).To(HaveLen(1))
			Expect(get(s).Status.Restarts).To(BeZero())
		}
		Expect(h.Sessions()).To(HaveLen(items))
		Expect(h.Events("started")).To(HaveLen(items))
	})

	It("is not made again where the answer of tmux was lost: what runs is adopted", func() {
		h := env.NewDemoHost()
		behindTmux(h, `"$tmux" "$@" >/dev/null; exit 1`)
		s := h.WorkItem(17)
		h.Ready(s)
		aTurn(h, s, "are you there?")
		Expect(attempts(h)).To(Equal(1))
		Expect(h.Sessions()).To(HaveLen(1))
		Expect(h.Events("started")).To(HaveLen(1))
		Eventually(h.Reported).WithArguments(s, "SessionSpawned").Should(Equal(1))
	})

	It("C146: leaves settings that are not JSON byte for byte as they are, says so, and goes on", func() {
		h := env.NewDemoHost()
		dir := filepath.Join(h.Dir, "config")
		settings, broken := filepath.Join(dir, "settings.json"), []byte("{ \"model\": opus, // mine\r\n")
		Expect(os.Mkdir(dir, 0o700)).To(Succeed())
		Expect(os.WriteFile(settings, broken, 0o640)).To(Succeed())
		h.UpdateClass(h.Class, func(c *api.SessionClass) {
			c.Spec.Trust = api.TrustPolicy{Enabled: new(true), AcceptBypassPermissions: "Always"}
			c.Spec.Harness.Env = append(c.Spec.Harness.Env, api.EnvVar{Name: "CLAUDE_CONFIG_DIR", Value: dir})
		})
		s := h.Standing("unreadable")
		h.Ready(s)
		aTurn(h, s, "are you there?")
		Eventually(h.Reported).WithArguments(s, "WorkspaceTrustFailed").Should(Equal(1))
		Expect(os.ReadFile(settings)).To(Equal(broken))
		info, err := os.Stat(settings)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o640)))
	})
})

// itemOf is the session of a work item of h, which is not created.
func itemOf(h *testenv.Host, number int) *api.WorkItemSession {
	return &api.WorkItemSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "github-octo-repo-" + itoa(number+1)},
		Spec: api.WorkItemSessionSpec{
			HostPlacement: api.HostPlacement{ClassName: h.Class, HostName: h.Name},
			WorkItem:      api.WorkItem{Provider: "github", Owner: "octo", Repo: "repo", Number: int64(number) + 1},
		},
	}
}

var _ = Describe("an agent that ends between the intent of a start and the start", func() {
	// held makes the agent start a session and ends it while its tmux is about to create
	// the terminal. letGo lets that tmux go on, and waits for its end.
	held := func(number int64) (h *testenv.Host, s *api.WorkItemSession, letGo func()) {
		GinkgoHelper()
		h = env.NewDemoHost()
		gate := filepath.Join(h.Dir, "gate")
		Expect(syscall.Mkfifo(gate, 0o600)).To(Succeed())
		behindTmux(h, `mkdir "$dir/held" && echo $$ >"$dir/held/pid.new" && mv "$dir/held/pid.new" "$dir/held/pid" && read -r <"$dir/gate"`)
		s = h.WorkItem(number, func(s *api.WorkItemSession) { s.Spec.Prompt = "Say it once." })
		pid := 0
		Eventually(func() error {
			b, err := os.ReadFile(filepath.Join(h.Dir, "held", "pid"))
			if err == nil {
				pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
			}
			return err
		}).Should(Succeed())
		h.Agent.Kill()
		released := false
		letGo = func() {
			if released {
				return
			}
			released = true
			// Opened for both, because it may have no reader any more.
			f, err := os.OpenFile(gate, os.O_RDWR, 0)
			Expect(err).NotTo(HaveOccurred())
			defer func() { _ = f.Close() }()
			_, err = f.WriteString("go\n")
			Expect(err).NotTo(HaveOccurred())
			Eventually(func() error { return syscall.Kill(pid, 0) }).Should(MatchError(syscall.ESRCH))
		}
		DeferCleanup(letGo)
		Expect(get(s).Status.Launch).To(HaveValue(HaveField("Confirmed", false)), "the intent is on record")
		return h, s, letGo
	}
	oneSession := func(h *testenv.Host, s *api.WorkItemSession, launch string) {
		GinkgoHelper()
		h.Ready(s)
		Eventually(h.Submits).WithArguments("Say it once.").Should(HaveLen(1))
		h.AwaitOutcome(h.Say(s, "and this"), testenv.Submitted)
		Expect(h.Submits("Say it once.")).To(HaveLen(1))
		Expect(h.Sessions()).To(HaveLen(1))
		Expect(h.Sessions()[0].Generation).To(Equal(launch))
		Expect(h.Events("started")).To(HaveLen(1))
		Expect(get(s).Status.Launch.ID).To(Equal(launch))
		Expect(s.Status.Restarts).To(BeZero())
		Expect(h.Events("started")[0].Argv).To(ContainElements("--session-id", s.Status.ConversationID))
		Eventually(h.Reported).WithArguments(s, "SessionSpawned").Should(Equal(1))
	}

	It("C021: a terminal that nobody recorded is adopted, and told what it was to be told, once", func() {
		h, s, letGo := held(21)
		letGo()
		launch := get(s).Status.Launch.ID
		h.StartAgent()
		oneSession(h, s, launch)
	})

	It("one that does not exist yet is made under the same launch; a late one of the dead agent comes to nothing", func() {
		h, s, letGo := held(22)
		launch := get(s).Status.Launch.ID
		h.StartAgent()
		h.Ready(s)
		letGo()
		oneSession(h, s, launch)
	})
})

// byHand holds a conversation in dir, outside of any session, as a person does who starts
// the harness, and returns its id.
func byHand(h *testenv.Host, dir string) string {
	GinkgoHelper()
	id, log := uuid.NewString(), faketest.Log(filepath.Join(h.Dir, "by-hand.log"))
	cmd := exec.Command(h.DemoHarness(), "--session-id", id)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "FAKEHARNESS_HOME="+filepath.Join(h.Dir, "harness"), "FAKEHARNESS_LOG="+string(log), "FAKEHARNESS_BEHAVIOUR=flush-late=0")
	t, err := faketest.Start(cmd, 80, 24)
	Expect(err).NotTo(HaveOccurred())
	defer t.Close()
	Eventually(log.Count).WithArguments("ready").Should(Equal(1))
	Expect(t.Type("by hand")).To(Succeed())
	Eventually(t.Screen).Should(ContainSubstring("by hand"))
	Expect(t.Type("\r")).To(Succeed())
	Eventually(answered).WithArguments(h, "by hand").Should(BeTrue())
	return id
}

var _ = Describe("a conversation that a person registers", func() {
	It("starts nothing at once, and is resumed in its directory by the next message", func() {
		h := env.NewDemoHost()
		id := byHand(h, h.Work)
		s := h.WorkItem(30, func(s *api.WorkItemSession) {
			s.Spec.Conversation = &api.RegisteredConversation{ID: id, WorkingDirectory: h.Work}
		})
		h.Await(s, api.ConditionReady, "False/NotStarted")
		Consistently(h.Sessions, time.Second).Should(BeEmpty())
		h.AwaitOutcome(h.Say(s, "go on"), testenv.Submitted)
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		Expect(h.Submits("go on")).To(HaveLen(1))
		Expect(h.Events("started")).To(HaveLen(1))
		Expect(h.Events("started")[0].Argv).To(ContainElements("--resume", id))
		Expect(get(s).Status.ConversationID).To(Equal(id))
		Expect(s.Status.WorkingDirectory).To(Equal(h.Work))
	})

	It("R04: is resumed by one session only, whoever asks at the same moment; the other goes on when that one has stopped", func() {
		h := env.NewDemoHost()
		id := byHand(h, h.Work)
		var both []*api.WorkItemSession
		for n := range int64(2) {
			both = append(both, h.WorkItem(40+n, func(s *api.WorkItemSession) {
				s.Spec.Conversation = &api.RegisteredConversation{ID: id, WorkingDirectory: h.Work}
			}))
		}
		for _, s := range both {
			h.Await(s, api.ConditionReady, "False/NotStarted")
		}
		var said []*api.SessionMessage
		for _, s := range both {
			said = append(said, h.Say(s, "for "+s.Name))
		}
		has := func(s *api.WorkItemSession) bool { return get(s).Status.ConversationID == id }
		Eventually(func() bool { return has(both[0]) || has(both[1]) }).Should(BeTrue())
		first, second := 0, 1
		if has(both[1]) {
			first, second = 1, 0
		}
		h.AwaitOutcome(said[first], testenv.Submitted)
		h.Await(both[second], api.ConditionReady, "False/ConversationInUse")
		Expect(h.Message(both[second], api.ConditionReady)).To(ContainSubstring("WorkItemSession " + h.Namespace + "/" + both[first].Name))
		Consistently(func() int { return len(h.Events("started")) }, 6*time.Second).Should(Equal(1))
		Expect(h.Outcome(said[second])()).NotTo(HavePrefix("Submitted"))

		want(both[first], api.SessionStateStopped)
		h.AwaitOutcome(said[second], testenv.Submitted)
		h.Await(both[second], api.ConditionResumed, "True/ConversationContinued")
		Expect(has(both[second])).To(BeTrue())
		want(both[first], api.SessionStateRunning)
		h.Await(both[first], api.ConditionReady, "False/ConversationInUse")
		Expect(h.Events("started")).To(HaveLen(2))

		By("handing it back: what the other added is no stranger's (R14)")
		want(both[second], api.SessionStateStopped)
		h.Await(both[first], api.ConditionResumed, "True/ConversationContinued")
		h.Ready(both[first])
	})

	It("gives way to a fresh one where it cannot be resumed, which is said", func() {
		h := env.NewDemoHost()
		id := uuid.NewString()
		s := h.WorkItem(31, func(s *api.WorkItemSession) {
			s.Spec.Conversation = &api.RegisteredConversation{ID: id, WorkingDirectory: h.Work}
		})
		h.AwaitOutcome(h.Say(s, "go on"), testenv.Submitted)
		h.Await(s, api.ConditionResumed, "False/ResumeFailed")
		Expect(h.Submits("go on")).To(HaveLen(1))
		Expect(get(s).Status.ConversationID).NotTo(Equal(id))
		Eventually(h.Reported).WithArguments(s, "SessionResumeFailed").Should(Equal(1))
	})
})

var _ = Describe("a message that was said before its session was started", SpecPriority(1), func() {
	It("comes after the first one, also where the harness is at its prompt before the start is over", func() {
		h := env.NewDemoHost()
		slow := filepath.Join(h.Dir, "slow")
		instead(h, " new-session -d -P ", `"${tmux[0]}" "$@"
	code=$?
	until grep -qs SessionStart "$dir"/agent/sessions/*/*.jsonl; do sleep 0.1; done
	sleep 1 # it is believed to be at its prompt half a second later
	touch "$dir/slow"
	exit $code`)
		// The agent waits five seconds for tmux: on a busy machine the first start may be too slow.
		for i := range 5 {
			s := h.Standing(fmt.Sprint("early-", i), func(s *api.StandingSession) { s.Annotations = map[string]string{api.PausedAnnotation: "true"} })
			m := h.Say(s, "said before "+s.Name)
			h.Update(s, func() { delete(s.Annotations, api.PausedAnnotation) })
			h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted)
			h.AwaitOutcome(m, testenv.Submitted)
			var said []string
			for _, e := range h.Events("submit") {
				said = append(said, e.Text)
			}
			Expect(said).To(HaveLen(2 * (i + 1)))
			Expect(said[2*i:]).To(HaveExactElements(ContainSubstring("You are the standing session"), ContainSubstring("said before "+s.Name)))
			if _, err := os.Stat(slow); err == nil {
				break
			}
		}
		Expect(slow).To(BeARegularFile())
	})
})
