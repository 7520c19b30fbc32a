package session

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/harness"
)

// emitted are events that were told at once.
type emitted struct {
	Store
	events []event.Event
}

func (e *emitted) Emit(told event.Event, _ string, _ ...any) { e.events = append(e.events, told) }

var _ = Describe("a session that goes ahead after an upgrade (H05)", func() {
	waiting := func(uids ...types.UID) map[types.UID]bool {
		m := map[types.UID]bool{}
		for _, u := range uids {
			m[u] = true
		}
		return m
	}
	DescribeTable("keeps back", func(r rollout, digest string, uid types.UID, want string) {
		why, _ := r.ahead(digest, uid)
		if want == "" {
			Expect(why).To(BeEmpty())
		} else {
			Expect(why).To(ContainSubstring(want))
		}
	},
		Entry("nobody on a host without a history", rollout{}, "new", types.UID("a"), ""),
		Entry("nobody where nothing changed", rollout{Proved: "new"}, "new", types.UID("a"), ""),
		Entry("nobody where nothing changed, whatever is left of an earlier one", rollout{Proved: "new", Canary: &canary{UID: "b", Digest: "new"}}, "new", types.UID("a"), ""),
		Entry("nobody where the harness has no hooks", rollout{Proved: "old"}, "", types.UID("a"), ""),
		Entry("nobody before one goes", rollout{Proved: "old"}, "new", types.UID("a"), ""),
		Entry("not itself", rollout{Proved: "old", Canary: &canary{UID: "a", Digest: "new"}}, "new", types.UID("a"), ""),
		Entry("the others, with its name and what a person does", rollout{Proved: "old", Canary: &canary{UID: "b", Session: "standing/x/b", Digest: "new"}}, "new", types.UID("a"), "standing/x/b goes ahead of the others with what an upgrade of the-loop changed, and has not reached its prompt yet: when that lasts, attach to it and look. To"),
		Entry("the others, with where they are to answer", rollout{Proved: "old", Canary: &canary{UID: "b", Session: "standing/x/b", Digest: "new"}, asks: true}, "new", types.UID("a"), "it asks something: attach to it and answer. To"),
		Entry("nobody when it went ahead of an earlier upgrade", rollout{Proved: "old", Canary: &canary{UID: "b", Digest: "older"}}, "new", types.UID("a"), ""),
		Entry("itself once its harness ended and others wait", rollout{Proved: "old", passed: "a", waiting: waiting("a", "b")}, "new", types.UID("a"), "another session goes ahead"),
		Entry("not itself when nobody else waits", rollout{Proved: "old", passed: "a", waiting: waiting("a")}, "new", types.UID("a"), ""),
		Entry("not another than the one that ended", rollout{Proved: "old", passed: "a", waiting: waiting("a", "b")}, "new", types.UID("b"), ""),
	)

	running := Input{Desired: DesiredRunning, Holder: HolderLiveOurs}
	ended := Input{Desired: DesiredRunning, Holder: HolderDeadOurs}
	absent := Input{Desired: DesiredRunning, Holder: HolderAbsent}
	stopped := Input{Desired: DesiredStopped, Holder: HolderLiveOurs}
	unknown := Input{Desired: DesiredRunning, Holder: HolderUnknown}
	dying := Input{Desired: DesiredRunning, Holder: HolderDeadOurs, Dying: true}
	asked := Input{Desired: DesiredRunning, Holder: HolderAbsent, StopRequested: time.Unix(1, 0)}
	launched := canarySight{launched: true}
	none := func(reason string) Plan { return Plan{Action: ActionNone, Reason: reason} }
	DescribeTable("goes, is proved, or leaves it to another", func(in Input, p Plan, s canarySight, want canaryStep) {
		Expect(canaryAt(in, p, s)).To(Equal(want))
	},
		Entry("its old harness is asked to end", running, Plan{Action: ActionTerminate}, canarySight{}, canaryGoes),
		Entry("its old harness is being ended, and was at its prompt", running, none(api.ReasonStopping), canarySight{ready: true}, canaryGoes),
		Entry("what is left of it is swept", ended, Plan{Action: ActionSweep}, canarySight{}, canaryGoes),
		Entry("it is being started", absent, Plan{Action: ActionSpawn}, canarySight{}, canaryGoes),
		Entry("it is asked about its model first", ended, none(api.ReasonStarting), canarySight{}, canaryGoes),
		Entry("it starts, or asks something", running, none(api.ReasonRunning), launched, canaryGoes),
		Entry("it is at its prompt", running, none(api.ReasonRunning), canarySight{launched: true, ready: true}, canaryProved),
		Entry("its harness ended", ended, Plan{Action: ActionSweep}, launched, canaryEnded),
		Entry("how its harness ended is not known yet", dying, none(api.ReasonStopping), launched, canaryGoes),
		Entry("it is gone with the terminal server", absent, Plan{Action: ActionSpawn}, launched, canaryEnded),
		Entry("something came in the way", absent, none(api.ReasonBinaryMissing), canarySight{}, canaryGaveUp),
		Entry("something came in the way after its old harness was asked to end", asked, none(api.ReasonBinaryMissing), canarySight{}, canaryGaveUp),
		Entry("so did a start gate", asked, none(api.ReasonGated), canarySight{}, canaryGaveUp),
		Entry("so did a person, who paused it", asked, none(api.ReasonPaused), canarySight{}, canaryGaveUp),
		Entry("its old harness, which was asked to end, is waited for", asked, none(api.ReasonStopping), canarySight{}, canaryGoes),
		Entry("its old harness does not end", asked, none(api.ReasonStopping), canarySight{late: true}, canaryLate),
		Entry("it asks something for hours", running, none(api.ReasonRunning), canarySight{launched: true, asks: true, late: true}, canaryGoes),
		Entry("it asks nothing, and does not come to its prompt", running, none(api.ReasonRunning), canarySight{launched: true, late: true}, canaryLate),
		Entry("it comes to its prompt late", running, none(api.ReasonRunning), canarySight{launched: true, ready: true, late: true}, canaryProved),
		Entry("tmux does not answer for hours", unknown, none(api.ReasonTmuxUnknown), canarySight{launched: true, late: true}, canaryGoes),
		Entry("it is paused before it starts", absent, none(api.ReasonPaused), canarySight{}, canaryGaveUp),
		Entry("its checkout takes minutes", absent, Plan{Action: ActionPrepareCheckout}, canarySight{}, canaryGaveUp),
		Entry("it is stopped", stopped, Plan{Action: ActionTerminate}, launched, canaryGaveUp),
		Entry("tmux does not answer", unknown, none(api.ReasonTmuxUnknown), launched, canaryGoes),
	)

	spawn := Plan{Action: ActionSpawn}
	var (
		e     *Engine
		now   *clocktesting.FakePassiveClock
		known sync.Map
		woken chan struct{}
		class *api.SessionClass
	)
	started := time.Unix(1000, 0)
	restart := func(dir string) {
		wakes := make(chan struct{}, 9)
		now, woken = clocktesting.NewFakePassiveClock(started), wakes
		e = &Engine{Dir: dir, Shim: filepath.Join(dir, "shim"), HookSocket: "/s", Clock: now, Wake: func() { wakes <- struct{}{} }, HostLog: logr.Discard(), KnownUID: func(uid string) bool {
			// Whoever is asked may need seconds; nobody is to wait for that.
			Expect(e.rollouts.mu.TryLock()).To(BeTrue(), "asked with the lock")
			e.rollouts.mu.Unlock()
			_, gone := known.Load(uid)
			return !gone
		}}
	}
	adapter := func(name string) harness.Adapter {
		a, err := harness.Get(name)
		Expect(err).NotTo(HaveOccurred())
		return a
	}
	with := func(json string) {
		for _, name := range []string{"claude", "codex"} {
			json = strings.ReplaceAll(json, "NEW-"+name, e.preparedDigest(adapter(name)))
		}
		Expect(os.WriteFile(e.rolloutsFile(), []byte(json), 0o600)).To(Succeed())
	}
	of := func(uid types.UID) *turn {
		obj := &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: string(uid), UID: uid}}
		obj.Spec.State = api.SessionStateRunning
		return &turn{Engine: e, Subject: &Subject{Object: obj, Class: class, Log: logr.Discard()}, status: obj.HostedStatus(), mem: e.memories.of(uid), launch: launchSpec{adapter: adapter("claude")}}
	}
	goes := func(uid types.UID) bool {
		t := of(uid)
		return t.behindCanary() == nil && t.goesAhead(absent, spawn)
	}
	waits := func(uid types.UID) {
		t := of(uid)
		Expect(t.behindCanary()).To(HaveField("Reason", api.ReasonWaitingForCanary))
		t.followCanary(context.Background(), absent, none(api.ReasonWaitingForCanary))
	}
	BeforeEach(func() {
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "shim"), []byte("new"), 0o600)).To(Succeed())
		known, class = sync.Map{}, &api.SessionClass{}
		restart(dir)
	})

	It("takes the place of one that is gone, which an agent that was away did not see; a second one waits", func() {
		with(`{"claude":{"proved":"old","canary":{"uid":"gone","session":"x","digest":"NEW-claude"}}}`)
		known.Store("gone", true)
		Expect(goes("a")).To(BeTrue())
		Expect(goes("a")).To(BeTrue())
		waits("b")
		Expect(of("b").goesAhead(absent, spawn)).To(BeFalse())
		By("another agent on the same directory")
		restart(e.Dir)
		waits("b")
		By("the canary's object goes")
		e.forgetRollout("a")
		Eventually(woken).Should(Receive())
		Expect(goes("b")).To(BeTrue())
	})

	DescribeTable("is none any more when its class is", func(change func(t *turn)) {
		with(`{"claude":{"proved":"old"},"codex":{"proved":"old"}}`)
		Expect(goes("a")).To(BeTrue())
		waits("b")
		t := of("a")
		change(t)
		t.followCanary(context.Background(), absent, none(api.ReasonClassNotFound))
		Eventually(woken).Should(Receive())
		Expect(goes("b")).To(BeTrue())
	},
		Entry("gone", func(t *turn) { t.Class, t.launch.adapter = nil, nil }),
		Entry("of another harness", func(t *turn) { t.launch.adapter = adapter("codex") }),
		Entry("of another account", func(t *turn) {
			t.Class = &api.SessionClass{}
			t.Class.Spec.Harness.Env = []api.EnvVar{{Name: "CLAUDE_CONFIG_DIR", Value: "/other"}}
		}),
	)

	DescribeTable("that ended leaves the place to no session that is", func(leave func(other *turn)) {
		with(`{"claude":{"proved":"old"}}`)
		Expect(goes("a")).To(BeTrue())
		waits("b")
		a := of("a")
		a.status.Launch = &api.Launch{ID: "2", Confirmed: true}
		a.followCanary(context.Background(), ended, Plan{Action: ActionSweep})
		Expect(of("a").behindCanary()).NotTo(BeNil(), "it is b's turn")
		leave(of("b"))
		Expect(goes("a")).To(BeTrue())
	},
		Entry("let go of by hand", func(*turn) { known.Store("b", true) }),
		Entry("without a class", func(t *turn) {
			t.Class, t.launch.adapter = nil, nil
			t.followCanary(context.Background(), absent, none(api.ReasonClassNotFound))
		}),
		Entry("of another harness", func(t *turn) {
			t.launch.adapter = adapter("codex")
			t.followCanary(context.Background(), absent, none(api.ReasonBinaryMissing))
		}),
	)

	It("holds nobody of another account, program or configuration", func() {
		key := func(name, binary string, env ...api.EnvVar) string {
			c := &api.SessionClass{}
			c.Spec.Harness.Binary, c.Spec.Harness.Env = binary, env
			return rolloutKey(adapter(name), c)
		}
		Expect(key("claude", "")).To(Equal("claude"))
		Expect(key("claude", "claude", api.EnvVar{Name: "EDITOR", Value: "vi"})).To(Equal("claude"))
		all := []string{"claude", key("codex", ""), key("claude", "/opt/claude"), key("claude", "", api.EnvVar{Name: "CLAUDE_CONFIG_DIR", Value: "/a"}),
			key("claude", "", api.EnvVar{Name: "CLAUDE_CONFIG_DIR", Value: "/b"}), key("claude", "", api.EnvVar{Name: "HOME", Value: "/b"}), key("claude", "", api.EnvVar{Name: "ANTHROPIC_API_KEY", Value: "secret"})}
		slices.Sort(all)
		Expect(slices.Compact(slices.Clone(all))).To(Equal(all))
		Expect(strings.Join(all, " ")).NotTo(ContainSubstring("secret"))
		By("two classes")
		with(`{"claude":{"proved":"old"},"` + key("claude", "/opt/claude") + `":{"proved":"old"}}`)
		Expect(goes("a")).To(BeTrue())
		class = &api.SessionClass{}
		class.Spec.Harness.Binary = "/opt/claude"
		Expect(goes("b")).To(BeTrue())
		waits("c")
	})

	// live is the canary, whose harness has been started.
	live := func(uid types.UID) (*turn, *emitted) {
		t, told := of(uid), &emitted{}
		t.Store = told
		t.status.Launch, t.status.StartedAt = &api.Launch{ID: "2", Confirmed: true}, new(metav1.NewTime(started))
		t.status.Harness, t.status.AttachCommand = "claude", "tmux attach"
		return t, told
	}

	It("that asks something holds the others for as long as it does, and that is told once, of it alone", func() {
		with(`{"claude":{"proved":"old"}}`)
		Expect(goes("a")).To(BeTrue())
		waits("b")
		a, told := live("a")
		a.state.Activity, a.state.WaitingFor = harness.ActivityAwaitingInput, "a secret of its terminal"
		a.followCanary(context.Background(), running, none(api.ReasonRunning))
		now.SetTime(started.Add(24 * time.Hour))
		a.followCanary(context.Background(), running, none(api.ReasonRunning))
		Expect(told.events).To(Equal([]event.Event{event.SessionCanaryAsks}))
		why := of("b").behindCanary().Message
		Expect(why).To(And(HavePrefix("standingsession/ns/a goes ahead"), ContainSubstring("it asks something")))
		Expect(why).NotTo(Or(ContainSubstring("secret"), ContainSubstring("tmux")))
	})

	It("that asks nothing and does not come to its prompt is passed over, with a warning", func() {
		with(`{"claude":{"proved":"old"}}`)
		Expect(goes("a")).To(BeTrue())
		waits("b")
		a, told := live("a")
		a.status.Harness = "" // nothing is known of its screen
		patience := adapter("claude").Traits().ReadyWithin + canaryPatience
		now.SetTime(started.Add(patience))
		a.followCanary(context.Background(), running, none(api.ReasonRunning))
		waits("b")
		now.SetTime(started.Add(patience + time.Second))
		a.followCanary(context.Background(), running, none(api.ReasonRunning))
		Eventually(woken).Should(Receive())
		Expect(told.events).To(Equal([]event.Event{event.SessionCanaryLate}))
		Expect(of("a").behindCanary()).NotTo(BeNil(), "b is first")
		Expect(goes("b")).To(BeTrue())
	})

	DescribeTable("holds nobody where what was known cannot be read", func(content string) {
		with(content)
		Expect(goes("a")).To(BeTrue())
		Expect(goes("b")).To(BeTrue())
		e.forgetRollout("a")
	},
		Entry("nothing", `null`),
		Entry("nothing of a harness", `{"claude":null,"codex":null}`),
		Entry("half of it", `{"claude":{"pro`),
	)

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
