// Package chaos proves the delivery of messages while everything around it is killed,
// stopped or fails (`make chaos`).
package chaos

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/faultpoint"
	"github.com/theloop-dev/the-loop/test/testenv"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

// standard is the short run that is a part of `make test`, of a seed by which in that time
// everything happens that may. options are those of the run that is made: flags change
// them.
var (
	standard = Options{Seed: 61618, Messages: 200, Sessions: 4, Duration: 20 * time.Second}
	options  Options
)

func init() {
	flag.Uint64Var(&options.Seed, "seed", standard.Seed, "the run to make")
	flag.IntVar(&options.Messages, "messages", standard.Messages, "how many messages to send")
	flag.IntVar(&options.Sessions, "sessions", standard.Sessions, "to how many sessions")
	flag.DurationVar(&options.Duration, "duration", standard.Duration, "how long they are sent, and things go wrong; from a minute on also what takes minutes to recover from")
}

func TestChaos(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "chaos")
}

// binaries is where the programs that are built for chaos are kept, "" for nowhere.
const binaries = "THE_LOOP_CHAOS_BIN"

// build makes a directory with the agent and the pane process built for chaos, beside the
// other programs.
func build() string {
	GinkgoHelper()
	tb := GinkgoTB()
	dir := os.Getenv(binaries)
	if dir == "" {
		dir = tb.TempDir()
	}
	cmd := exec.Command("go", "build", "-tags", "chaos", "-o", dir+"/", "./cmd/agent", "./cmd/loop-shim")
	cmd.Dir, cmd.Env = ground.Root(tb), append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	others := ground.Programs(tb, "./cmd/the-loop", "./cmd/controller", "./test/fakeharness", "./cmd/agent")
	for _, name := range []string{"the-loop", "controller", "fakeharness"} {
		link := filepath.Join(dir, name)
		if err := os.Remove(link); !os.IsNotExist(err) {
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(os.Symlink(filepath.Join(others, name), link)).To(Succeed())
	}
	By("looking that nobody else's agent has a point in it")
	for path, has := range map[string]bool{filepath.Join(others, "agent"): false, filepath.Join(dir, "agent"): true} {
		program, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(bytes.Contains(program, []byte(faultpoint.Env))).To(Equal(has), path)
	}
	return dir
}

// setUp starts everything and the sessions.
func setUp(ctx context.Context) *stage {
	GinkgoHelper()
	GinkgoTB().Setenv("THE_LOOP_BIN", build())
	env := testenv.Start(ctx, "chaos")
	// Everybody asks here, the hooks of the harnesses too.
	path := filepath.Join(env.SuiteDir, "points")
	GinkgoTB().Setenv(faultpoint.Env, path)
	p, err := listen(path)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.close)
	class := func(h *testenv.Host, behaviour ...string) api.SessionClassSpec {
		spec := h.DemoClass(append([]string{"flush-late=0"}, behaviour...)...)
		spec.Harness.Env = append(spec.Harness.Env, api.EnvVar{Name: faultpoint.Env, Value: path})
		spec.Messages.MaxPending = new(int32(10000))
		return spec
	}
	s := &stage{points: p, count: map[Kind]int{}, deleted: map[string]bool{}}
	s.Host = env.NewHost(func(h *testenv.Host) api.SessionClassSpec { return class(h, "think=50") })
	slow := s.Class + "-slow"
	s.agents = append(s.agents, s.Agent)
	s.CreateClass(slow, class(s.Host, "think=400", "slow-hooks=300"))
	// Names and numbers that are the beginning of others.
	numbers := []int64{1, 12, 123, 1234, 12345}
	for i := range options.Sessions {
		name := slow
		if i%4 < 2 {
			name = s.Class
		}
		n := numbers[i/2%len(numbers)] + 100000*int64(i/2/len(numbers))
		if i%2 == 0 {
			s.sessions = append(s.sessions, s.Standing(fmt.Sprintf("s-%d", n), func(o *api.StandingSession) { o.Spec.ClassName = name }))
		} else {
			s.sessions = append(s.sessions, s.WorkItem(n, func(o *api.WorkItemSession) { o.Spec.ClassName = name }))
		}
	}
	for _, obj := range s.sessions {
		s.Ready(obj, 2*time.Minute)
	}
	return s
}

var _ = Describe("chaos", func() {
	It("C052 P20 P22 P40 P43 P45: loses, doubles, merges, misdirects and reorders nothing, and says of each message what is true", func(ctx SpecContext) {
		s := setUp(ctx)
		began := time.Now()
		senders, sent := newSenders(options, s.Client, s.sessions)
		supervised, stop := context.WithCancel(ctx)
		var supervising, sending sync.WaitGroup
		supervising.Go(func() {
			defer GinkgoRecover()
			s.supervise(supervised)
		})
		DeferCleanup(supervising.Wait)
		DeferCleanup(stop)
		for _, sender := range senders {
			sending.Go(func() {
				defer GinkgoRecover()
				Expect(sender.send(ctx)).To(Succeed())
			})
		}
		s.play(ctx, Plan(options))
		sending.Wait()
		s.tell("nothing goes wrong any more")
		s.settle(ctx)
		stop()
		supervising.Wait()
		messages, submits, objects, err := s.collect(ctx, sent.all)
		Expect(err).NotTo(HaveOccurred())
		violations := Check(messages, submits)
		for i, v := range violations {
			if i < stories {
				fmt.Println(s.story(v, messages, objects))
			}
		}
		if len(violations) > 0 {
			fmt.Println(strings.Join(s.log, "\n"))
		}
		fmt.Println(s.table(options, messages, submits, violations, time.Since(began)))
		Expect(violations).To(BeEmpty())
		unsure := 0
		for _, m := range messages {
			if m.Outcome == api.OutcomeTyped || m.Outcome == api.OutcomeUnknown {
				unsure++
			}
		}
		Expect(unsure).To(BeNumerically("<=", len(messages)/20), "whoever is sure of nothing is never wrong")
	}, NodeTimeout(24*time.Hour))
})

const (
	// stuckFor is how long nothing may come to an end before a person looks.
	stuckFor = 15 * time.Second
)

// settle waits until every message has come to its end, as long as some do. Where the
// product asks for a person, there is one.
func (s *stage) settle(ctx context.Context) {
	moved, before := time.Now(), -1
	looked := time.Now()
	for time.Since(moved) < patience && pause(ctx, time.Second) {
		var list api.SessionMessageList
		if err := s.Client.List(ctx, &list, client.InNamespace(s.Namespace)); err != nil {
			continue
		}
		left := map[string][]string{}
		n := 0
		for _, m := range list.Items {
			if !m.Status.Outcome.Final() {
				n++
				k := m.Spec.SessionRef.Kind + "/" + m.Spec.SessionRef.Name
				for _, c := range m.Status.Conditions {
					left[k] = append(left[k], c.Message)
				}
			}
		}
		if n == 0 {
			return
		}
		if n != before {
			moved, before = time.Now(), n
		}
		if time.Since(moved) > stuckFor && time.Since(looked) > stuckFor {
			looked = time.Now()
			s.help(ctx, left)
		}
	}
}

// help does what the product asks a person for: submits what stands in an input box, or
// starts a harness again that was slowed down.
func (s *stage) help(ctx context.Context, left map[string][]string) {
	for i, obj := range s.sessions {
		why, waits := left[key(obj)]
		if !waits {
			continue
		}
		s.tell("%s still has %d conditions of messages: %.300q", key(obj), len(why), why[:min(3, len(why))])
		t, p, err := s.pane(ctx, i)
		if err != nil {
			s.tell("%s is asked to start again: %v", key(obj), err)
			_ = s.annotate(ctx, obj, fmt.Sprint(time.Now().UnixNano()))
			continue
		}
		if strings.Contains(strings.Join(why, " "), "submit it or clear it") {
			s.tell("a person submits what stands in %s", t.Name)
			_ = s.command(ctx, "copy-mode", "-q", "-t", t.ID+":."+p.ID) // in which Enter may do nothing
			_ = s.command(ctx, "send-keys", "-t", t.ID+":."+p.ID, "Enter")
		}
	}
}
