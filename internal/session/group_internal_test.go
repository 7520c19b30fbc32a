package session

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/cgroup"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/harness/launch"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// groupsOf makes what it is told to.
type groupsOf struct {
	group cgroup.Group
	err   error
	limit int64
}

func (g *groupsOf) Make(_ string, limit int64, _ int) (cgroup.Group, error) {
	g.limit = limit
	return g.group, g.err
}

// Load believes what is on record: what looks like a group in a test is none.
func (*groupsOf) Load(dir string) (g cgroup.Group) {
	if data, err := os.ReadFile(filepath.Join(dir, cgroup.File)); err == nil {
		Expect(json.Unmarshal(data, &g)).To(Succeed())
	}
	return g
}

func (*groupsOf) Tidy(func(string) bool) error { return nil }

var _ = Describe("the memory of a session", func() {
	var (
		t      *turn
		groups *groupsOf
	)
	BeforeEach(func() {
		groups = &groupsOf{}
		s := &Subject{Object: &api.StandingSession{ObjectMeta: metav1.ObjectMeta{UID: "u1"}}, Log: logr.Discard(),
			Class: &api.SessionClass{ObjectMeta: metav1.ObjectMeta{Name: "small"}}}
		s.Class.Spec.Resources.Limits.Memory = new(resource.MustParse("512Mi"))
		t = &turn{Engine: &Engine{Dir: GinkgoT().TempDir(), HostName: "build-1", Groups: groups, Clock: testingclock.NewFakeClock(time.Unix(1000, 0))},
			Subject: s, status: s.Object.HostedStatus(), mem: &memory{endedSince: time.Unix(1000, 0)}}
		t.status.Harness = "custom"
		Expect(os.MkdirAll(t.sessionDir("u1"), 0o700)).To(Succeed())
	})

	It("T02: is bounded as its class says, and the pane process is to say where that fails", func() {
		groups.group = cgroup.Group{Unified: "/u", Legacy: "/m", Limit: 512 << 20}
		Expect(t.confine(tmux.Epoch{})).To(Equal(launch.Groups{Unified: "/u", Legacy: "/m", Refused: t.refusedFile()}))
		Expect(groups.limit).To(BeEquivalentTo(512 << 20))
		Expect(t.group()).To(Equal(groups.group))
		Expect(t.news).To(BeEmpty())
		By("a class without a bound")
		t.Class.Spec.Resources.Limits.Memory, groups.group.Limit = nil, 0
		Expect(t.confine(tmux.Epoch{})).To(Equal(launch.Groups{Unified: "/u", Legacy: "/m"}))
		Expect(groups.limit).To(BeZero())
	})

	It("T02: that cannot be bounded keeps nothing from starting, and is told once for each cause", func() {
		groups.err = errors.New("read-only file system")
		for range 2 {
			Expect(t.confine(tmux.Epoch{})).To(Equal(launch.Groups{}))
		}
		Expect(t.news).To(HaveLen(1))
		Expect(t.news[0].event.Name).To(Equal(event.SessionMemoryUnbounded.Name))
		Expect(t.news[0].message).To(Equal("the harness runs without the bound of 512Mi for its memory: read-only file system"))
		groups.err = errors.New("another")
		Expect(t.confine(tmux.Epoch{})).Error().NotTo(HaveOccurred())
		Expect(t.news).To(HaveLen(2))
		By("a class that asks for none")
		t.Class.Spec.Resources.Limits.Memory = nil
		Expect(t.confine(tmux.Epoch{})).Error().NotTo(HaveOccurred())
		Expect(t.news).To(HaveLen(2))
	})

	// counted is a group of cgroup v2 in which the kernel has counted.
	counted := func(events string) {
		dir := filepath.Join(t.Dir, "group")
		Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "memory.events"), []byte(events), 0o600)).To(Succeed())
		Expect(cgroup.Group{Unified: dir, Limit: 512 << 20}.Save(t.sessionDir("u1"))).To(Succeed())
	}
	const own, host = "oom 1\noom_kill 1\noom_group_kill 1\n", "oom 0\noom_kill 1\noom_group_kill 1\n"

	It("T02: that is not bounded because the group was refused is told, once for each cause", func() {
		counted("")
		t.sight = Sighting{Holder: HolderLiveOurs}
		t.hear(context.Background())
		Expect(t.news).To(BeEmpty())
		Expect(os.WriteFile(t.refusedFile(), []byte("could not be entered: no"), 0o600)).To(Succeed())
		for range 2 {
			t.hear(context.Background())
			Expect(t.news).To(HaveLen(1))
		}
		Expect(t.news[0].message).To(Equal("the harness runs without the bound of 512Mi for its memory: could not be entered: no"))
		By("another cause, with an end before anybody looked")
		Expect(os.WriteFile(t.refusedFile(), []byte("could not be entered: never"), 0o600)).To(Succeed())
		t.sight = Sighting{Holder: HolderDeadOurs, Pane: tmux.Pane{Dead: true, ExitSignal: "SIGKILL"}}
		t.hear(context.Background())
		Expect(t.news).To(HaveLen(2))
		By("the next start")
		Expect(t.confine(tmux.Epoch{})).Error().NotTo(HaveOccurred())
		Expect(t.refusedFile()).NotTo(BeAnExistingFile())
	})

	It("T02: a kill that the harness outlived is not the cause of its own end, and one right before is", func() {
		clock := t.Clock.(*testingclock.FakeClock)
		live := Sighting{Holder: HolderLiveOurs, Session: tmux.Session{Generation: "one"}}
		dead := Sighting{Holder: HolderDeadOurs, Session: tmux.Session{Generation: "one"}, Pane: tmux.Pane{Dead: true, ExitSignal: "SIGKILL"}}
		counted("oom 0\noom_kill 0\n")
		t.sight = live
		Expect(t.forgive()).To(Equal(countKills))
		By("a child, at noon")
		counted("oom 1\noom_kill 1\n")
		Expect(t.forgive()).To(Equal(outlived))
		clock.Step(outlived / 2)
		Expect(t.forgive()).To(Equal(outlived / 2))
		clock.Step(outlived / 2)
		Expect(t.forgive()).To(Equal(countKills))
		Expect(t.group().Kills).To(BeEquivalentTo(1))
		By("a kill -9, at night, seen by an agent that was started anew")
		t.mem, t.sight = &memory{}, dead
		t.hear(context.Background())
		Expect(t.mem.words.oom).To(BeNil())
		Expect(t.news).To(BeEmpty())
		By("another kill for memory instead, which a look at an old listing takes for a child's")
		kills := cgroup.Group{Unified: filepath.Join(t.Dir, "group"), Limit: 512 << 20, Kills: 1}
		counted("oom 2\noom_kill 2\n")
		Expect(kills.Save(t.sessionDir("u1"))).To(Succeed())
		t.mem, t.sight = &memory{}, live
		Expect(t.forgive()).To(Equal(outlived))
		t.sight = dead
		t.hear(context.Background())
		Expect(t.mem.words.oom).NotTo(BeNil())
		Expect(t.news).To(HaveLen(1))
	})

	DescribeTable("T02 T03: an end is told to be one because memory was short, by whom and what to do",
		func(pane tmux.Pane, events string, stopped bool, says string) {
			counted(events)
			if stopped {
				t.status.StopRequestedAt = new(metav1.Now())
			}
			pane.Dead = true
			t.sight = Sighting{Holder: HolderDeadOurs, Session: tmux.Session{Generation: "one"}, Pane: pane}
			t.hear(context.Background())
			Expect(t.mem.words.oom != nil).To(Equal(says != ""))
			if says == "" {
				Expect(t.status.LastTermination).To(BeNil())
				Expect(t.news).To(BeEmpty())
				return
			}
			Expect(t.mem.words.how).To(Equal(says))
			Expect(t.status.LastTermination).To(HaveValue(Equal(api.SessionTermination{
				Reason: "OOMKilled", Message: says, FinishedAt: metav1.NewTime(time.Unix(1000, 0)), LaunchID: "one"})))
			Expect(t.news).To(HaveLen(1))

			By("a status that could not be written")
			t.status.LastTermination, t.news = nil, nil
			t.hear(context.Background())
			Expect(t.status.LastTermination).NotTo(BeNil())
			Expect(t.news).To(HaveLen(1))

			By("an agent that was started anew when the group was gone")
			Expect(os.RemoveAll(t.sessionDir("u1"))).To(Succeed())
			t.mem, t.news = &memory{}, nil
			t.hear(context.Background())
			Expect(t.mem.words.oom).NotTo(BeNil())
			Expect(t.mem.words.how).To(Equal(says))
			Expect(t.news).To(BeEmpty())
		},
		Entry("at its own limit", tmux.Pane{ExitSignal: "SIGKILL"}, own, false,
			"by the kernel's out-of-memory killer in the session's own group, limit 512Mi: raise spec.resources.limits.memory of SessionClass small, or have it do less at a time"),
		Entry("behind a wrapper", tmux.Pane{ExitStatus: new(137)}, own, false,
			"by the kernel's out-of-memory killer in the session's own group, limit 512Mi: raise spec.resources.limits.memory of SessionClass small, or have it do less at a time"),
		Entry("with the whole host", tmux.Pane{ExitSignal: "SIGKILL"}, host, false,
			"by the kernel's out-of-memory killer, because memory was short on the host or in a group above the session's: "+
				"give host build-1 more memory, run fewer sessions on it, or bound what each takes by spec.resources.limits.memory of its SessionClass"),
		Entry("by another's SIGKILL", tmux.Pane{ExitSignal: "SIGKILL"}, "oom 0\noom_kill 0\n", false, ""),
		Entry("by itself, after the kernel had ended a child of it", tmux.Pane{ExitStatus: new(1)}, own, false, ""),
		Entry("by us", tmux.Pane{ExitSignal: "SIGKILL"}, own, true, ""),
	)
})
