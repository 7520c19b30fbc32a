package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

var _ = Describe("what the session of a work item is told", func() {
	const noQuestions = "--disallowedTools=AskUserQuestion"

	// prompted is a host whose class has these prompts and this interaction.
	prompted := func(spawn api.PromptTemplate, interaction string) *testenv.Host {
		return env.NewHost(func(h *testenv.Host) api.SessionClassSpec {
			spec := h.DemoClass("flush-late=0")
			if spawn.ConfigMapKeyRef != nil {
				spawn.ConfigMapKeyRef.Namespace = h.Namespace
			}
			spec.Prompts.Spawn, spec.Interaction = spawn, interaction
			return spec
		})
	}

	It("is the built-in text with the item's own prompt as its task, once, and it cannot ask at the terminal", func() {
		h := prompted(api.PromptTemplate{From: api.PromptBuiltIn}, "WorkItem")
		s := h.WorkItem(51, func(s *api.WorkItemSession) { s.Spec.Prompt = "Mend the build." })
		h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted)
		Expect(h.Submits("")).To(HaveLen(1))
		Expect(h.Submits("")[0].Text).To(And(
			ContainSubstring("github:octo/repo#51 in octo/repo is marked for autonomous execution"), ContainSubstring("the-loop ask --work-item"),
			HaveSuffix("---\n\nMend the build."), Not(ContainSubstring("$"))))
		Expect(h.Events("started")[0].Argv).To(ContainElement(noQuestions))
	})

	It("is a template of the class with its placeholders replaced; without its ConfigMap nothing is started, and it is said which one is missing", func() {
		h := prompted(api.PromptTemplate{From: api.PromptConfigMap, ConfigMapKeyRef: &api.NamespacedConfigMapKey{
			ConfigMapKey: api.ConfigMapKey{Name: "prompts", Key: "spawn"},
		}}, "CLI")
		s := h.WorkItem(52, func(s *api.WorkItemSession) { s.Spec.Prompt = "Mend it." })
		h.Await(s, api.ConditionReady, "False/PromptUnreadable")
		Expect(h.Message(s, api.ConditionReady)).To(ContainSubstring("spec.prompts.spawn of SessionClass " + h.Class + ": ConfigMap " + h.Namespace + "/prompts"))
		Expect(h.Sessions()).To(BeEmpty())
		env.Kubectl("create", "configmap", "-n", h.Namespace, "prompts", "--from-literal=other=text")
		Eventually(h.Message).WithArguments(s, api.ConditionReady).Should(ContainSubstring("ConfigMap " + h.Namespace + `/prompts has no key "spawn"`))
		env.Kubectl("patch", "configmap", "-n", h.Namespace, "prompts", "-p", `{"data": {"spawn": "Item $work_item, $action; $task $nobody."}}`)
		Eventually(h.Submits).WithArguments("Item github:octo/repo#52, -; Mend it. $nobody.").Should(HaveLen(1))
		Expect(h.Submits("")[0].Text).To(ContainSubstring("ask them here in the terminal"), "the directive is not to be left out")
		Expect(h.Events("started")[0].Argv).NotTo(ContainElement(noQuestions))
	})

	It("is the item's own prompt alone where the class says so, and nothing where there is none", func() {
		h := prompted(api.PromptTemplate{From: api.PromptNone}, "WorkItem")
		s := h.WorkItem(53, func(s *api.WorkItemSession) { s.Spec.Prompt = "Only this." })
		h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted)
		Expect(h.Submits("")[0].Text).To(MatchRegexp(`^From the-loop, at the start of this conversation:\n\nOnly this\.$`))
		silent := h.WorkItem(54)
		h.AwaitOutcome(h.Say(silent, "first words"), testenv.Submitted)
		Expect(h.Boot(silent)).To(BeNil())
	})

	It("says nothing of a ticket to a standing session, which may ask at its terminal", func() {
		h := prompted(api.PromptTemplate{From: api.PromptBuiltIn}, "WorkItem")
		s := h.Standing("bystander")
		h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted)
		Expect(h.Submits("")[0].Text).NotTo(ContainSubstring("autonomous execution"))
		Expect(h.Events("started")[0].Argv).NotTo(ContainElement(noQuestions))
	})
})
