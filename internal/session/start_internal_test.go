package session

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/harness"
)

// attachable is a Terminal that tells how to attach, and must be asked for nothing else.
type attachable struct{ Terminal }

func (attachable) AttachCommand(string, bool) string { return "tmux attach" }

// refusing is a Store to which nothing may be written.
type refusing struct{ Store }

func (refusing) Emit(event.Event, string, ...any) {}

var _ = Describe("a start", func() {
	var (
		dir string
		obj *api.StandingSession
		t   *turn
	)
	BeforeEach(func() {
		dir = GinkgoT().TempDir()
		obj = &api.StandingSession{
			ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "u"},
			Spec:       api.StandingSessionSpec{State: api.SessionStateRunning, RestartPolicy: api.RestartPolicyAlways, Cwd: "/"},
		}
		s := &Subject{Object: obj, Store: refusing{}, Log: logr.Discard(), Class: &api.SessionClass{Spec: api.SessionClassSpec{Harness: api.HarnessSpec{Name: "claude"}}}}
		clk := testingclock.NewFakeClock(time.Now())
		e := &Engine{Clock: clk, Dir: dir, Shim: "/shim", Terminal: attachable{}, LookPath: func(string) (string, error) { return "/bin/true", nil },
			Getenv: func(string) string { return "" }, Backoff: NewBackoff(clk)}
		t = &turn{Engine: e, Subject: s, status: obj.HostedStatus(), mem: &memory{}, sight: Sighting{Holder: HolderAbsent, Name: "loop-standing-s"}}
		t.launch, t.obst = e.resolve(s)
		Expect(t.obst).To(BeNil())
	})

	It("C074: takes no recorded conversation that looks like a flag: it begins a fresh one", func() {
		const flag = "--dangerously-skip-permissions"
		obj.Status.ConversationID, obj.Status.Harness, obj.Status.StartedAt = flag, "claude", new(metav1.NewTime(t.now()))
		obj.Status.Launch = &api.Launch{ID: "one", Mode: api.LaunchFresh, Confirmed: true}
		t.mem.swept = "one"
		plan := Decide(t.input())
		Expect(plan).To(And(HaveField("Action", ActionSpawn), HaveField("Mode", api.LaunchFresh), HaveField("NewConversation", true)))
		boot, problem := t.intend(context.Background(), plan)
		Expect(problem).To(BeNil())
		file, _, err := t.command(boot)
		Expect(err).NotTo(HaveOccurred())
		Expect(harness.ValidConversationID(obj.Status.ConversationID)).To(BeTrue())
		Expect(file.Argv[1:3]).To(Equal([]string{"--session-id", obj.Status.ConversationID}))
		Expect(file.Argv).NotTo(ContainElement(ContainSubstring(flag)))
		Expect(meta.FindStatusCondition(obj.Status.Conditions, api.ConditionResumed).Reason).To(Equal(api.ReasonFreshConversation))
	})

	It("T35: on a full disk is refused before anything is recorded or started, and says why", func() {
		Expect(os.WriteFile(filepath.Join(dir, "sessions"), nil, 0o600)).To(Succeed(), "nothing can be made below it")
		plan := Decide(t.input())
		Expect(plan.Action).To(Equal(ActionSpawn))
		again, wait, err := t.spawn(context.Background(), plan)
		Expect(err).NotTo(HaveOccurred())
		Expect(again).To(BeFalse())
		Expect(wait).To(BeNumerically(">", 0))
		Expect(t.status.Launch).To(BeNil())
		Expect(t.status.ConversationID).To(BeEmpty())
		Expect(t.blocked.Reason).To(Equal(api.ReasonSpawnFailed))
		Expect(t.blocked.Message).To(HavePrefix("the agent's state directory cannot be written: mkdir " + dir))
	})
})

var _ = Describe("the grace of a harness that was asked to end", func() {
	It("T36: is counted by a clock that nobody sets, also when its begin was written down meanwhile", func() {
		began := time.Now()
		obj := &api.StandingSession{}
		t := &turn{Engine: &Engine{Clock: testingclock.NewFakeClock(began)}, Subject: &Subject{Object: obj}, status: obj.HostedStatus(), mem: &memory{stopRequested: began}}
		// As the API server returns it.
		t.status.StopRequestedAt = new(metav1.NewTime(began.Truncate(time.Second).UTC()))
		since := t.stopRequested()
		Expect(since.String()).To(ContainSubstring(" m=+"), "the reading of the monotonic clock")
		Expect(since).To(Equal(began))
		// What a jump changes is the time of day alone, without which the two differ as before.
		p := Decide(Input{Desired: DesiredStopped, Holder: HolderLiveOurs, Started: true, StopRequested: since, Grace: 5 * time.Second, Now: began.Add(2 * time.Second)})
		Expect(p.Action).To(Equal(ActionNone))
		Expect(p.Requeue).To(Equal(3 * time.Second))
	})
})
