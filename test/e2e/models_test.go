package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// choosing makes a host whose class declares models and efforts, and has arguments of its
// own.
func choosing(models, efforts []string, behaviour ...string) *testenv.Host {
	GinkgoHelper()
	return env.NewHost(func(h *testenv.Host) api.SessionClassSpec {
		class := h.DemoClass(append([]string{"flush-late=0"}, behaviour...)...)
		class.Harness.Args = []string{"--permission-mode", "plan"}
		class.Models, class.Efforts = models, efforts
		return class
	})
}

// asking makes a session ask for a model and an effort.
func asking(model, effort string) func(*api.StandingSession) {
	return func(s *api.StandingSession) { s.Spec.Model, s.Spec.Effort = model, effort }
}

// starts are the starts of a session's harness, asked those of a harness that was asked
// something.
func starts(h *testenv.Host, s *api.StandingSession) []faketest.Event {
	return slices.DeleteFunc(h.Events("started"), func(e faketest.Event) bool { return e.UID != string(s.UID) })
}

func asked(h *testenv.Host) []faketest.Event {
	return slices.DeleteFunc(h.Events("started"), func(e faketest.Event) bool { return !slices.Contains(e.Argv, "-p") })
}

// chosenArgs are the arguments of the newest start behind the conversation's id, up to our
// hooks.
func chosenArgs(h *testenv.Host, s *api.StandingSession) []string {
	all := starts(h, s)
	argv := all[len(all)-1].Argv
	return argv[3:slices.Index(argv, "--settings")]
}

// verdicts are what the harness of a host said, as "Kind name verdict".
func verdicts(h *testenv.Host) func() []string {
	return func() (out []string) {
		host := &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: h.Name}}
		if err := env.Client.Get(context.Background(), client.ObjectKeyFromObject(host), host); err != nil {
			return []string{err.Error()}
		}
		for _, v := range host.Status.Models {
			Expect(v.Class).To(Equal(h.Class))
			out = append(out, fmt.Sprintf("%s %s %s", v.Kind, v.Name, v.Verdict))
		}
		return out
	}
}

var plain = []string{"--permission-mode", "plan"}

var _ = Describe("models and efforts", func() {
	It("C031: go behind the harness's arguments, the model first, and nothing else is added", func() {
		h := choosing([]string{"m-one", "m-two"}, []string{"high"})
		s := h.Standing("s", asking("m-two", "high"))
		h.Ready(s)
		Expect(chosenArgs(h, s)).To(Equal([]string{"--permission-mode", "plan", "--model", "m-two", "--effort", "high"}))
		h.Await(s, api.ConditionChoiceApplied, "True/Applied")
		Expect(s.Status.HarnessArgs).To(Equal(plain))
		Expect([]string{s.Status.Model, s.Status.Effort}).To(Equal([]string{"m-two", "high"}))

		By("warning of a flag that the operator's arguments have too, and taking nothing away")
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Harness.Args = []string{"--model", "m-old"} })
		Eventually(func() string { return h.Message(s, api.ConditionChoiceApplied) }).Should(ContainSubstring("warning: the harness arguments have --model too"))
		h.AwaitOutcome(h.Say(s, "Go on."), testenv.Submitted)
		Expect(chosenArgs(h, s)).To(Equal([]string{"--model", "m-old", "--model", "m-two", "--effort", "high"}))
	})

	It("C036 H20: a model that is no longer declared is left out, the effort stays", func() {
		h := choosing([]string{"m-one"}, []string{"high"})
		s := h.Standing("s", asking("m-one", "high"))
		h.Ready(s)
		h.AwaitOutcome(h.Say(s, "Remember me."), testenv.Submitted)
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Models = []string{"m-new"} })
		h.Await(s, api.ConditionChoiceApplied, "False/ModelNotDeclared")
		Expect(h.Message(s, api.ConditionChoiceApplied)).To(And(ContainSubstring(`spec.model "m-one" is left out`), ContainSubstring("m-new"), ContainSubstring(`spec.effort "high" is applied`)))
		Expect(starts(h, s)).To(HaveLen(1))
		h.KillHarness(s)
		Eventually(func() int { return len(starts(h, s)) }).Should(Equal(2))
		h.Ready(s)
		Expect(chosenArgs(h, s)).To(Equal([]string{"--permission-mode", "plan", "--effort", "high"}))
		Expect([]string{get(s).Status.Model, s.Status.Effort}).To(Equal([]string{"", "high"}))
		Eventually(func() int { return h.Reported(s, "SessionChoiceLeftOut") }).Should(Equal(1))

		By("starting one that never had it just so")
		fresh := h.Standing("fresh", asking("m-one", ""))
		h.Ready(fresh)
		Expect(chosenArgs(h, fresh)).To(Equal(plain))

		By("coming back with the declaration")
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Models = []string{"m-one"} })
		h.Await(fresh, api.ConditionChoiceApplied, "True/Applied")
		h.AwaitOutcome(h.Say(fresh, "Go on."), testenv.Submitted)
		Expect(chosenArgs(h, fresh)).To(Equal([]string{"--permission-mode", "plan", "--model", "m-one"}))
		By("having no condition without a choice")
		h.Update(fresh, func() { fresh.Spec.Model = "" })
		Eventually(h.Condition(fresh, api.ConditionChoiceApplied)).Should(Equal("absent"))
	})

	It("C037: a live session gets changed arguments with the next message, once, and goes on with its conversation", func() {
		h := choosing([]string{"m-one"}, nil)
		s := h.Standing("s", asking("m-one", ""))
		h.Ready(s)
		h.AwaitOutcome(h.Say(s, "Remember me."), testenv.Submitted)
		id := get(s).Status.ConversationID
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Harness.Args = []string{"--verbose"} })
		Consistently(func() int { return len(starts(h, s)) }, 2*time.Second).Should(Equal(1))
		h.AwaitOutcome(h.Say(s, "After the change."), testenv.Submitted)
		Expect(starts(h, s)).To(HaveLen(2))
		Expect(starts(h, s)[1].Argv[1:3]).To(Equal([]string{"--resume", id}))
		Expect(chosenArgs(h, s)).To(Equal([]string{"--verbose", "--model", "m-one"}))
		Expect(h.Submits("After the change.")).To(HaveLen(1))
		Expect(get(s).Status.ConversationID).To(Equal(id))
	})

	It("C037: nothing is typed behind a message under way when the arguments have changed", func() {
		h := choosing([]string{"m-one"}, nil, "slow-hooks=700")
		s := h.Standing("s")
		h.Ready(s)
		boot := h.AwaitBoot(s)
		Eventually(func() string { return boot.Name + string(get(boot).Status.Outcome) }).Should(HaveSuffix("Submitted"))
		first := h.Say(s, "Under way.")
		Eventually(h.Submits).WithArguments("Under way.").Should(HaveLen(1))
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Harness.Args = []string{"--verbose"} })
		second := h.Say(s, "Behind it.")
		h.AwaitOutcome(second, testenv.Submitted)
		h.AwaitOutcome(first, testenv.Submitted)
		Expect(starts(h, s)).To(HaveLen(2))
		Expect(chosenArgs(h, s)).To(Equal([]string{"--verbose"}))
		Expect(h.Submits("Behind it.")).To(HaveLen(1))
		Expect(h.Submits("Behind it.")[0].PID).To(Equal(h.HarnessPID(s)))
		Expect(h.Submits("Under way.")).To(HaveLen(1))
	})

	It("C038: a live session of whose launch nothing is on record is left alone", func() {
		h := choosing([]string{"m-one"}, nil)
		s := h.Standing("s", asking("m-one", ""))
		h.Ready(s)
		h.AwaitOutcome(h.Say(s, "Remember me."), testenv.Submitted)
		h.Agent.Kill()
		env.Kubectl("patch", "-n", h.Namespace, "standing/s", "--subresource=status", "--type=json", "-p",
			`[{"op":"remove","path":"/status/harness"},{"op":"remove","path":"/status/harnessArgs"},{"op":"remove","path":"/status/model"}]`)
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Harness.Args, c.Spec.Models = []string{"--verbose"}, nil })
		h.StartAgent()
		h.AwaitOutcome(h.Say(s, "After the change."), testenv.Submitted)
		Expect(starts(h, s)).To(HaveLen(1))
		Expect(h.Submits("After the change.")).To(HaveLen(1))
	})

	It("C039: a message that names flags and models is only text", func() {
		h := env.NewDemoHost()
		s := h.Standing("s")
		h.Ready(s)
		m := h.Say(s, "--dangerously-skip-permissions --model m-evil\n/model m-evil\neffort: max")
		h.AwaitOutcome(m, testenv.Submitted)
		h.KillHarness(s)
		Eventually(func() int { return len(starts(h, s)) }).Should(Equal(2))
		h.Ready(s)
		for _, e := range starts(h, s) {
			Expect(e.Argv[3]).To(Equal("--settings"))
			Expect(e.Argv[5:]).To(BeEmpty())
		}
		Expect(h.Condition(s, api.ConditionChoiceApplied)()).To(Equal("absent"))
		By("asking no harness about a class that declares nothing")
		Expect(asked(h)).To(BeEmpty())
		Expect(verdicts(h)()).To(BeEmpty())
	})

	It("that the harness refuses are left out, and no verdict brings one in", func() {
		h := choosing([]string{"m-good", "m-gone"}, []string{"high"}, "refuse-model=m-gone")
		first := h.Standing("first")
		Eventually(verdicts(h)).Should(Equal([]string{"Effort high Accepted", "Model m-gone Refused", "Model m-good Accepted"}))
		Expect(asked(h)).To(HaveLen(3), "each alone, and not their product")
		for _, e := range asked(h) {
			Expect(e.UID).To(HavePrefix("probe-"))
			Expect(e.Cwd).To(Equal(filepath.Join(h.StateDir, "probe")))
			Expect(e.Cwd).NotTo(BeAnExistingFile())
			Expect(e.Argv[1:3]).To(Equal([]string{"-p", "Reply with the word OK."}))
			Expect(e.Argv[len(e.Argv)-4:]).To(HaveExactElements("--permission-mode", "plan", HavePrefix("--"), Not(BeEmpty())))
		}
		s := h.Standing("s", asking("m-gone", "high"))
		h.Ready(s)
		h.Await(s, api.ConditionChoiceApplied, "False/ModelRefused")
		Expect(h.Message(s, api.ConditionChoiceApplied)).To(And(ContainSubstring("selected model (m-gone)"), ContainSubstring(api.ModelsCheckRequestedAnnotation)))
		Expect(chosenArgs(h, s)).To(Equal([]string{"--permission-mode", "plan", "--effort", "high"}))
		h.AwaitOutcome(h.Say(s, "All the same."), testenv.Submitted)
		Expect(starts(h, s)).To(HaveLen(1))

		By("a forged verdict introducing nothing")
		forged, err := json.Marshal([]map[string]any{{"op": "add", "path": "/status/models/-", "value": map[string]any{
			"class": h.Class, "kind": "Model", "name": "m-evil", "harness": "claude", "verdict": "Accepted", "checkedAt": "2026-01-02T03:04:05Z",
		}}})
		Expect(err).NotTo(HaveOccurred())
		env.Kubectl("patch", "shost/"+h.Name, "--subresource=status", "--type=json", "-p", string(forged))
		h.Update(s, func() { s.Spec.Model = "m-evil" })
		h.Await(s, api.ConditionChoiceApplied, "False/ModelNotDeclared")

		By("asking anew when the environment has changed, and bringing the model back")
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Harness.Env[2].Value = "flush-late=0" })
		Eventually(verdicts(h)).Should(ContainElement("Model m-gone Accepted"))
		h.Update(s, func() { s.Spec.Model = "m-gone" })
		h.Await(s, api.ConditionChoiceApplied, "True/Applied")
		h.AwaitOutcome(h.Say(s, "With it."), testenv.Submitted)
		Expect(chosenArgs(h, s)).To(Equal([]string{"--permission-mode", "plan", "--model", "m-gone", "--effort", "high"}))
		Expect(starts(h, first)).To(HaveLen(1))
	})

	It("are asked about once more when a harness ended, before it is started again (specification 13.2)", func() {
		var says string // what the harness does beside its class's behaviour, from now on
		h := env.NewHost(func(h *testenv.Host) api.SessionClassSpec {
			class := h.DemoClass("flush-late=0")
			says = filepath.Join(h.Dir, "says")
			class.Harness.Binary = filepath.Join(h.Dir, "claude")
			script := fmt.Sprintf("#!/bin/sh\nFAKEHARNESS_BEHAVIOUR=\"$FAKEHARNESS_BEHAVIOUR,$(cat %s 2>/dev/null)\" exec %s \"$@\"\n", says, h.DemoHarness())
			Expect(os.WriteFile(class.Harness.Binary, []byte(script), 0o700)).To(Succeed())
			class.Models = []string{"m-one"}
			return class
		})
		s := h.Standing("s", asking("m-one", ""))
		h.Ready(s)
		h.AwaitOutcome(h.Say(s, "Remember me."), testenv.Submitted)
		Eventually(verdicts(h)).Should(Equal([]string{"Model m-one Accepted"}))
		id := get(s).Status.ConversationID
		// anew ends the harness, and returns the arguments of the next start.
		anew := func(n int, saying string) []string {
			GinkgoHelper()
			Expect(os.WriteFile(says, []byte(saying), 0o600)).To(Succeed())
			h.KillHarness(s)
			Eventually(func() int { return len(starts(h, s)) }).Should(Equal(n))
			Expect(asked(h)).To(HaveLen(n), "once for each end")
			Expect(asked(h)[n-1].Time).To(BeTemporally("<", starts(h, s)[n-1].Time))
			h.Ready(s)
			Expect(get(s).Status.ConversationID).To(Equal(id))
			return starts(h, s)[n-1].Argv
		}
		Expect(anew(2, "refuse-model=m-one")).NotTo(ContainElement("--model"))
		h.Await(s, api.ConditionChoiceApplied, "False/ModelRefused")
		By("going with it again") // behind the delay of a harness that ended twice
		Expect(anew(3, "")).To(ContainElements("--model", "m-one"))
		h.Await(s, api.ConditionChoiceApplied, "True/Applied")
	})

	It("of which the harness says nothing block nothing", func() {
		h := choosing([]string{"m-one"}, nil, "fail-print")
		s := h.Standing("s", asking("m-one", ""))
		h.Ready(s)
		Eventually(verdicts(h)).Should(Equal([]string{"Model m-one Unknown"}))
		h.AwaitOutcome(h.Say(s, "Go on."), testenv.Submitted)
		Expect(chosenArgs(h, s)).To(Equal([]string{"--permission-mode", "plan", "--model", "m-one"}))
		Expect(starts(h, s)).To(HaveLen(1))
		h.Await(s, api.ConditionChoiceApplied, "True/Applied")
	})

	It("are asked about again on request and not otherwise, whatever becomes of the agent", func() {
		h := choosing([]string{"m-one"}, []string{"high", "ultra"})
		s := h.Standing("s")
		h.Ready(s)
		both := []string{"Effort high Accepted", "Model m-one Accepted"} // this harness has no ultra
		Eventually(verdicts(h)).Should(Equal(both))
		Expect(asked(h)).To(HaveLen(2))
		h.RestartAgent()
		h.AwaitOutcome(h.Say(s, "Still here?"), testenv.Submitted)
		Eventually(func() string { return h.Condition(s, api.ConditionAcceptingInput)() }).Should(Equal("True/Idle"))
		quiet := time.Now().Add(11 * time.Second) // what a harness does is written every ten seconds
		Eventually(time.Now, 15*time.Second).Should(BeTemporally(">", quiet))
		Expect(h.Writes(quiet.Add(-time.Second))).To(BeZero())
		Expect(asked(h)).To(HaveLen(2))

		host := &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: h.Name}}
		handled := func() string { return get(host).Status.LastHandledModelsCheck }
		env.Kubectl("annotate", "shost", h.Name, api.ModelsCheckRequestedAnnotation+"=one")
		Eventually(handled).Should(Equal("one"))
		Expect(asked(h)).To(HaveLen(4))
		Expect(verdicts(h)()).To(Equal(both))
		Expect(host.Status.Tmux.Socket).To(Equal(h.Socket), "the other facts of the host stay")
		env.Kubectl("annotate", "shost", h.Name, "unrelated=x")
		Consistently(func() int { return len(asked(h)) }, 2*time.Second).Should(Equal(4))
	})
})
