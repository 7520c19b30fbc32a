package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/cgroup"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// bounded is a host whose sessions may use 128Mi each, with the demo harness, which behaves as
// said.
func bounded(behaviour ...string) *testenv.Host {
	GinkgoHelper()
	if err := cgroup.Open("").Problem(); err != nil {
		Skip("no control group can be made here: " + err.Error())
	}
	return env.NewHost(func(h *testenv.Host) api.SessionClassSpec {
		c := h.DemoClass(append([]string{"flush-late=0"}, behaviour...)...)
		c.Resources.Limits.Memory = new(resource.MustParse("128Mi"))
		return c
	})
}

// groups are the control groups in which a process is.
func groups(pid int) string {
	GinkgoHelper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	Expect(err).NotTo(HaveOccurred())
	return string(b)
}

const outOfMemory = "by the kernel's out-of-memory killer in the session's own group, limit 128Mi: raise spec.resources.limits.memory of SessionClass "

var _ = Describe("a session that takes more memory than its class allows", func() {
	It("T02 T03: ends alone, which is told with the killer and the limit, and comes back by its policy", func() {
		h := bounded()
		var all []*api.StandingSession
		for _, name := range []string{"first", "greedy", "third"} {
			all = append(all, h.Standing(name))
		}
		var before []int
		for _, s := range all {
			aTurn(h, s, "hello "+s.Name)
			before = append(before, h.HarnessPID(s))
			own := "the-loop-session-" + string(s.UID)
			Expect(groups(h.HarnessPID(s))).To(ContainSubstring(own))
			Expect(groups(h.Pane(s).PID)).NotTo(ContainSubstring("the-loop-session-"), "the pane process tells of the end")
		}
		server := h.Snapshot().Epoch
		Expect(groups(server.PID)).NotTo(ContainSubstring("the-loop-session-"))
		greedy := all[1]
		id := get(greedy).Status.ConversationID

		h.Say(greedy, "fake: eat=1000\nTake it all.")
		message := outOfMemory + h.Class + ", or have it do less at a time"
		told(h, greedy, "session.oom_killed", 1)
		Expect(logged(h.Agent, greedy, "session.oom_killed")[0]).To(telling(
			"killer", "the kernel's out-of-memory killer in the session's own group", "limit", "128Mi"))
		Eventually(reasons).WithArguments(greedy).Should(ContainSubstring("Warning SessionOOMKilled End StandingSession"))
		Eventually(func() int32 { return get(greedy).Status.Restarts }).Should(BeEquivalentTo(1))
		h.Await(greedy, api.ConditionResumed, "True/ConversationContinued")
		h.Ready(greedy)
		Expect(get(greedy).Status.ConversationID).To(Equal(id))
		Expect(get(greedy).Status.LastTermination).To(HaveValue(And(HaveField("Reason", api.ReasonOOMKilled), HaveField("Message", message))))
		Expect(h.HarnessPID(greedy)).NotTo(Equal(before[1]))

		By("the others, and their terminal server")
		for _, i := range []int{0, 2} {
			Expect(h.HarnessPID(all[i])).To(Equal(before[i]))
			Expect(get(all[i]).Status).To(And(HaveField("Restarts", BeZero()), HaveField("LastTermination", BeNil())))
			aTurn(h, all[i], "after it "+all[i].Name)
		}
		Expect(h.Snapshot().Epoch).To(Equal(server))

		By("their ends")
		for _, s := range all {
			want(s, api.SessionStateStopped)
			h.Await(s, api.ConditionReady, "True/Stopped")
			Expect(left(s)).To(BeEmpty())
		}
		Expect(logged(h.Agent, all[0], "session.oom_killed")).To(BeEmpty())
	})

	It("T02: is OOMKilled where its policy does not start it again, and in a loop becomes ever rarer", func() {
		h := bounded()
		s := h.WorkItem(2)
		h.AwaitOutcome(h.Say(s, "hello"), testenv.Submitted)
		h.Say(s, "fake: eat=1000\nTake it all.")
		h.Await(s, api.ConditionReady, "False/OOMKilled")
		Expect(h.Message(s, api.ConditionReady)).To(HavePrefix("the harness ended " + outOfMemory + h.Class))

		By("one that does so at each start")
		behaves(h, h.Class, "eat=1000")
		loop := h.Standing("loop")
		h.Await(loop, api.ConditionReady, "False/CrashLoopBackOff")
		Expect(h.Message(loop, api.ConditionReady)).To(HavePrefix("the harness keeps ending " + outOfMemory))
		// The next one may have come already.
		Eventually(func() int { return len(logged(h.Agent, loop, "session.oom_killed")) }).Should(BeNumerically(">=", 2))
	})
})

var _ = Describe("the control group of a session", func() {
	It("T22: takes along what cleared its environment and left its parent", func() {
		h := bounded()
		h.UpdateClass(h.Class, func(c *api.SessionClass) {
			c.Spec.Harness.Binary = script(h, "daemons", `setsid env -i /bin/bash -c 'trap "" TERM HUP; echo $$ >'"$dir"'/escaped; exec sleep 300' </dev/null >/dev/null 2>&1 &
exec "$harness" "$@"`)
		})
		s := h.Standing("escapes")
		h.Ready(s)
		var escaped int
		Eventually(func() error {
			b, err := os.ReadFile(h.Dir + "/escaped")
			if err == nil {
				_, err = fmt.Sscan(string(b), &escaped)
			}
			return err
		}).Should(Succeed())
		// With the pane process, which is its reaper, goes all but the group that knows whose it is.
		Expect(syscall.Kill(h.Pane(s).PID, syscall.SIGKILL)).To(Succeed())
		Eventually(gone(escaped)).Should(BeTrue())
	})
})

// left are the control groups that there are of a session.
func left(s testenv.Session) []string {
	GinkgoHelper()
	var out []string
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); strings.Contains(line, " - cgroup") {
			_ = filepath.WalkDir(f[4], func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() && strings.HasSuffix(path, "/the-loop-session-"+string(s.GetUID())) {
					out = append(out, path)
				}
				return nil // what others make and remove meanwhile is not ours
			})
		}
	}
	return out
}
