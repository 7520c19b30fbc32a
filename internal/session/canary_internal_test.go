package session

import (
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/harness"
)

var _ = Describe("a session that goes ahead after an upgrade (H05)", func() {
	waiting := func(uids ...types.UID) map[types.UID]bool {
		m := map[types.UID]bool{}
		for _, u := range uids {
			m[u] = true
		}
		return m
	}
	DescribeTable("keeps back", func(r rollout, digest string, uid types.UID, gone bool, want string) {
		why := r.ahead(digest, uid, func(types.UID) bool { return !gone })
		if want == "" {
			Expect(why).To(BeEmpty())
		} else {
			Expect(why).To(ContainSubstring(want))
		}
	},
		Entry("nobody on a host without a history", rollout{}, "new", types.UID("a"), false, ""),
		Entry("nobody where nothing changed", rollout{Proved: "new"}, "new", types.UID("a"), false, ""),
		Entry("nobody where nothing changed, whatever is left of an earlier one", rollout{Proved: "new", Canary: &canary{UID: "b", Digest: "new"}}, "new", types.UID("a"), false, ""),
		Entry("nobody where the harness has no hooks", rollout{Proved: "old"}, "", types.UID("a"), false, ""),
		Entry("nobody before one goes", rollout{Proved: "old"}, "new", types.UID("a"), false, ""),
		Entry("not itself", rollout{Proved: "old", Canary: &canary{UID: "a", Digest: "new"}}, "new", types.UID("a"), false, ""),
		Entry("the others, with its name and what a person does", rollout{Proved: "old", Canary: &canary{UID: "b", Session: "standing/x/b", Digest: "new"}, note: "Attach: tmux"}, "new", types.UID("a"), false, "standing/x/b goes ahead"),
		Entry("nobody when it went ahead of an earlier upgrade", rollout{Proved: "old", Canary: &canary{UID: "b", Digest: "older"}}, "new", types.UID("a"), false, ""),
		Entry("nobody when it is gone", rollout{Proved: "old", Canary: &canary{UID: "b", Digest: "new"}}, "new", types.UID("a"), true, ""),
		Entry("itself once its harness ended and others wait", rollout{Proved: "old", passed: "a", waiting: waiting("a", "b")}, "new", types.UID("a"), false, "another session goes ahead"),
		Entry("not itself when nobody else waits", rollout{Proved: "old", passed: "a", waiting: waiting("a")}, "new", types.UID("a"), false, ""),
		Entry("not another than the one that ended", rollout{Proved: "old", passed: "a", waiting: waiting("a", "b")}, "new", types.UID("b"), false, ""),
	)

	running := Input{Desired: DesiredRunning, Holder: HolderLiveOurs}
	ended := Input{Desired: DesiredRunning, Holder: HolderDeadOurs}
	absent := Input{Desired: DesiredRunning, Holder: HolderAbsent}
	stopped := Input{Desired: DesiredStopped, Holder: HolderLiveOurs}
	unknown := Input{Desired: DesiredRunning, Holder: HolderUnknown}
	dying := Input{Desired: DesiredRunning, Holder: HolderDeadOurs, Dying: true}
	none := func(reason string) Plan { return Plan{Action: ActionNone, Reason: reason} }
	DescribeTable("goes, is proved, or leaves it to another", func(in Input, p Plan, launched, ready bool, want canaryStep) {
		Expect(canaryAt(in, p, launched, ready)).To(Equal(want))
	},
		Entry("its old harness is asked to end", running, Plan{Action: ActionTerminate}, false, false, canaryGoes),
		Entry("its old harness is being ended, and was at its prompt", running, none(api.ReasonStopping), false, true, canaryGoes),
		Entry("what is left of it is swept", ended, Plan{Action: ActionSweep}, false, false, canaryGoes),
		Entry("it is being started", absent, Plan{Action: ActionSpawn}, false, false, canaryGoes),
		Entry("it is asked about its model first", ended, none(api.ReasonStarting), false, false, canaryGoes),
		Entry("it starts, or asks something", running, none(api.ReasonRunning), true, false, canaryGoes),
		Entry("it is at its prompt", running, none(api.ReasonRunning), true, true, canaryProved),
		Entry("its harness ended", ended, Plan{Action: ActionSweep}, true, false, canaryEnded),
		Entry("how its harness ended is not known yet", dying, none(api.ReasonStopping), true, false, canaryGoes),
		Entry("it is gone with the terminal server", absent, Plan{Action: ActionSpawn}, true, false, canaryEnded),
		Entry("something came in the way", absent, none(api.ReasonBinaryMissing), false, false, canaryGaveUp),
		Entry("it is paused before it starts", absent, none(api.ReasonPaused), false, false, canaryGaveUp),
		Entry("its checkout takes minutes", absent, Plan{Action: ActionPrepareCheckout}, false, false, canaryGaveUp),
		Entry("it is stopped", stopped, Plan{Action: ActionTerminate}, true, false, canaryGaveUp),
		Entry("tmux does not answer", unknown, none(api.ReasonTmuxUnknown), true, false, canaryGoes),
	)

	It("takes the place of one that is gone, which an agent that was away did not see; a second one waits", func() {
		dir := GinkgoT().TempDir()
		shim := filepath.Join(dir, "shim")
		Expect(os.WriteFile(shim, []byte("new"), 0o600)).To(Succeed())
		a, err := harness.Get("claude")
		Expect(err).NotTo(HaveOccurred())
		e := &Engine{Dir: dir, Shim: shim, HookSocket: "/s", KnownUID: func(uid string) bool { return uid != "gone" }}
		Expect(writeWhole(e.rolloutsFile(), []byte(`{"claude":{"proved":"old","canary":{"uid":"gone","session":"x","digest":"`+e.preparedDigest(a)+`"}}}`))).To(Succeed())
		of := func(uid types.UID) *turn {
			obj := &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid}}
			obj.Spec.State = api.SessionStateRunning
			return &turn{Engine: e, Subject: &Subject{Object: obj, Log: logr.Discard()}, status: obj.HostedStatus(), launch: launchSpec{adapter: a}}
		}
		spawn := Plan{Action: ActionSpawn}
		Expect(of("a").goesAhead(absent, spawn)).To(BeTrue())
		Expect(of("a").goesAhead(absent, spawn)).To(BeTrue())
		Expect(of("b").goesAhead(absent, spawn)).To(BeFalse())
		Expect(of("b").behindCanary()).To(HaveField("Reason", api.ReasonWaitingForCanary))
		By("another agent on the same directory")
		e = &Engine{Dir: dir, Shim: shim, HookSocket: "/s", KnownUID: e.KnownUID}
		Expect(of("b").goesAhead(absent, spawn)).To(BeFalse())
		By("the canary's object goes")
		woken := make(chan struct{})
		e.Wake = func() { close(woken) }
		e.forgetRollout("a")
		Eventually(woken).Should(BeClosed())
		Expect(of("b").goesAhead(absent, spawn)).To(BeTrue())
	})

	It("is chosen by what is prepared: the same for each look, another for another shim", func() {
		dir := GinkgoT().TempDir()
		shim := filepath.Join(dir, "shim")
		Expect(os.WriteFile(shim, []byte("one"), 0o600)).To(Succeed())
		e := &Engine{Dir: dir, Shim: shim, HookSocket: "/s"}
		for _, name := range harness.Names() {
			a, err := harness.Get(name)
			Expect(err).NotTo(HaveOccurred())
			Expect(os.WriteFile(shim, []byte("one"), 0o600)).To(Succeed())
			one := e.preparedDigest(a)
			Expect(e.preparedDigest(a)).To(Equal(one), name)
			if !a.Traits().Evidence {
				Expect(one).To(BeEmpty(), name)
				continue
			}
			Expect(one).NotTo(BeEmpty(), name)
			Expect(os.WriteFile(shim, []byte("two"), 0o600)).To(Succeed())
			Expect(e.preparedDigest(a)).NotTo(Equal(one), name)
		}
	})
})
