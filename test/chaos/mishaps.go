package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/devcluster"
	"github.com/theloop-dev/the-loop/internal/faultpoint"
	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
	"github.com/theloop-dev/the-loop/test/testenv"
)

const (
	// together is how many mishaps there may be at a time.
	together = 3
	// reachWithin is how long a point may take to be reached.
	reachWithin = 4 * time.Second
	// askWithin bounds what a mishap asks of tmux and of the API server.
	askWithin = 3 * time.Second
	// patience is how long nothing may come to an end until the rest is called lost.
	patience = 4 * time.Minute
)

// stage is where the mishaps happen.
type stage struct {
	*testenv.Host
	sessions []testenv.Session
	points   *points

	locks sync.Map // of what a mishap is about, by name
	mu    sync.Mutex
	count map[Kind]int
	// deleted are the messages that were to be deleted, by name.
	deleted map[string]bool
	log     []string
	// agents are all that ran.
	agents []*testenv.Process
}

// lock keeps two mishaps from being about the same thing.
func (s *stage) lock(names ...string) (unlock func()) {
	var held []*sync.Mutex
	for _, n := range names {
		l, _ := s.locks.LoadOrStore(n, &sync.Mutex{})
		l.(*sync.Mutex).Lock()
		held = append(held, l.(*sync.Mutex))
	}
	return func() {
		for _, l := range held {
			l.Unlock()
		}
	}
}

func (s *stage) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// play runs a schedule to its end.
func (s *stage) play(ctx context.Context, plan []Mishap) {
	var running sync.WaitGroup
	places := make(chan struct{}, together)
	for _, m := range plan {
		if !pause(ctx, m.Gap) {
			break
		}
		places <- struct{}{}
		running.Go(func() {
			defer GinkgoRecover()
			defer func() { <-places }()
			s.happen(ctx, m)
		})
	}
	running.Wait()
}

// pause waits, and reports whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// happen lets one mishap happen, and end.
func (s *stage) happen(ctx context.Context, m Mishap) {
	about, do := s.action(m)
	defer s.lock(about...)()
	s.tell("%s", m)
	if err := do(ctx, m); err != nil {
		s.tell("%s: %v", m, err)
		return
	}
	s.mu.Lock()
	s.count[m.Kind]++
	s.mu.Unlock()
}

type action func(ctx context.Context, m Mishap) error

// action is what a mishap is about, in the order in which that is locked, and what
// happens.
func (s *stage) action(m Mishap) ([]string, action) {
	session := fmt.Sprint("session ", m.Session)
	switch m.Kind {
	case KillAgent:
		return []string{"agent", "point " + m.Point}, s.killAgent
	case StopAgent:
		return []string{"agent", "point " + m.Point}, s.stopAgent
	case FailWrite, FullDisk:
		return []string{"point " + m.Point}, s.fail
	case JumpClock:
		return []string{"clock"}, s.jump
	case StopServer, KillServer:
		return []string{"server"}, s.signalServer
	case KillHarness, StopHarness:
		return []string{session}, s.signalHarness
	case StopAPI:
		return []string{"api"}, s.stopAPI
	case RestartAPI:
		return []string{"api"}, s.restartAPI
	case KillHub, StopHub:
		return []string{"controller"}, s.disturbHub
	case Restart, Hold, Drop, Pause:
		return []string{session}, s.edit
	case Recall, Delete:
		return []string{session}, s.takeBack
	case Drain:
		return []string{"agent"}, s.drain
	}
	return []string{session}, s.person
}

// killAgent has the agent die, at once or at a point. The supervisor starts it again.
func (s *stage) killAgent(ctx context.Context, m Mishap) error {
	p := s.Agent
	if m.Point == "" {
		p.Kill()
	} else {
		defer s.points.disarm(m.Point)
		hit := s.points.arm(m.Point, "kill", 1).hit
		s.hurry(ctx, m)
		select {
		case <-hit:
		case <-p.Exited:
		case <-time.After(reachWithin):
			return fmt.Errorf("the point was not reached")
		}
		<-p.Exited
	}
	pause(ctx, m.For)
	return nil
}

func (s *stage) stopAgent(ctx context.Context, m Mishap) error {
	pid := s.Agent.PID()
	if m.Point == "" {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
	} else {
		defer s.points.disarm(m.Point)
		hit := s.points.arm(m.Point, "stop", 1).hit
		s.hurry(ctx, m)
		select {
		case pid = <-hit:
		case <-time.After(reachWithin):
			return fmt.Errorf("the point was not reached")
		}
	}
	pause(ctx, m.For)
	return resume(pid)
}

// hurry sees to it that the points of a start are come by.
func (s *stage) hurry(ctx context.Context, m Mishap) {
	if m.Point == faultpoint.Spawning || m.Point == faultpoint.Spawned {
		_ = s.annotate(ctx, s.sessions[m.Session], fmt.Sprint(time.Now().UnixNano()))
	}
}

// resume continues a stopped process until it runs: it may be on its way to its stop.
func resume(pid int) error {
	for range 3 {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

func (s *stage) fail(ctx context.Context, m Mishap) error {
	answer, times := "fail", m.Times
	if m.Kind == FullDisk {
		answer, times = "full", 1<<30
	}
	defer s.points.disarm(m.Point)
	t := s.points.arm(m.Point, answer, times)
	select {
	case <-t.hit:
	case <-time.After(reachWithin):
		return fmt.Errorf("the point was not reached")
	}
	pause(ctx, m.For)
	return nil
}

func (s *stage) jump(ctx context.Context, m Mishap) error {
	if err := s.points.setClock(m.Times); err != nil {
		return err
	}
	pause(ctx, m.For)
	return s.points.setClock(0)
}

func (s *stage) signalServer(ctx context.Context, m Mishap) error {
	snap, err := s.look(ctx)
	if err != nil {
		return err
	}
	if m.Kind == KillServer {
		return syscall.Kill(snap.Epoch.PID, syscall.SIGKILL)
	}
	if err := syscall.Kill(snap.Epoch.PID, syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, m.For)
	return resume(snap.Epoch.PID)
}

func (s *stage) look(ctx context.Context) (tmux.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	snap, err := s.Server.Snapshot(ctx)
	if err == nil && snap.Epoch.IsZero() {
		err = fmt.Errorf("no terminal server runs")
	}
	return snap, err
}

// pane finds the terminal of a session and the pane of its harness.
func (s *stage) pane(ctx context.Context, i int) (tmux.Session, tmux.Pane, error) {
	snap, err := s.look(ctx)
	if err != nil {
		return tmux.Session{}, tmux.Pane{}, err
	}
	for _, t := range snap.ByUID(string(s.sessions[i].GetUID())) {
		for _, p := range t.Panes {
			if !p.Dead {
				return t, p, nil
			}
		}
	}
	return tmux.Session{}, tmux.Pane{}, fmt.Errorf("%s has no live terminal", key(s.sessions[i]))
}

func (s *stage) signalHarness(ctx context.Context, m Mishap) error {
	_, p, err := s.pane(ctx, m.Session)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.PID, p.PID))
	if err != nil {
		return err
	}
	pid := 0
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		return fmt.Errorf("no harness runs in pane %s: %w", p.ID, err)
	}
	if m.Kind == KillHarness {
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, m.For)
	return resume(pid)
}

func (s *stage) stopAPI(ctx context.Context, m Mishap) error {
	all, err := devcluster.Processes(filepath.Join(s.SuiteDir, "cp"))
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.Name != "kube-apiserver" {
			continue
		}
		if err := syscall.Kill(p.PID, syscall.SIGSTOP); err != nil {
			return err
		}
		pause(ctx, m.For)
		return resume(p.PID)
	}
	return fmt.Errorf("no API server runs")
}

func (s *stage) restartAPI(ctx context.Context, m Mishap) error {
	if err := s.Cluster.StopAPIServer(ctx); err != nil {
		return err
	}
	pause(ctx, m.For)
	return s.Cluster.StartAPIServer(context.WithoutCancel(ctx))
}

func (s *stage) disturbHub(ctx context.Context, m Mishap) error {
	if m.Kind == KillHub {
		s.Controller.Kill()
		pause(ctx, m.For)
		s.RestartController()
		return nil
	}
	if err := syscall.Kill(s.Controller.PID(), syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, m.For)
	return resume(s.Controller.PID())
}

// edit is what a person does to a session's object.
func (s *stage) edit(ctx context.Context, m Mishap) error {
	obj := s.sessions[m.Session]
	switch m.Kind {
	case Restart:
		return s.annotate(ctx, obj, fmt.Sprint(time.Now().UnixNano()))
	case Pause:
		const change = `{"metadata":{"annotations":{"` + api.PausedAnnotation + `":%s}}}`
		return s.meanwhile(ctx, m, obj, fmt.Sprintf(change, `"chaos"`), fmt.Sprintf(change, "null"))
	}
	policy := api.DeliveryPolicyHold
	if m.Kind == Drop {
		policy = api.DeliveryPolicyDrop
	}
	const change = `{"spec":{"deliveryPolicy":%q}}`
	return s.meanwhile(ctx, m, obj, fmt.Sprintf(change, policy), fmt.Sprintf(change, api.DeliveryPolicyDeliver))
}

// drain has the host park its sessions for a while.
func (s *stage) drain(ctx context.Context, m Mishap) error {
	host := &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: s.Name}}
	const change = `{"spec":{"scheduling":%q}}`
	return s.meanwhile(ctx, m, host, fmt.Sprintf(change, api.HostSchedulingDraining), fmt.Sprintf(change, api.HostSchedulingEnabled))
}

// meanwhile changes an object and changes it back. What has no answer may have been done
// all the same, so that it is taken back in any case, until that was answered.
func (s *stage) meanwhile(ctx context.Context, m Mishap, obj client.Object, change, back string) error {
	err := s.patch(ctx, obj, change)
	pause(ctx, m.For)
	ctx = context.WithoutCancel(ctx)
	for end := time.Now().Add(patience); ; time.Sleep(retryAfter) {
		undo := s.patch(ctx, obj, back)
		if undo == nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("taking it back: %w", undo)
		}
	}
}

// takeBack recalls some of what waits for a session, or deletes one message of it.
func (s *stage) takeBack(ctx context.Context, m Mishap) error {
	ctx, cancel := context.WithTimeout(ctx, 3*askWithin)
	defer cancel()
	var list api.SessionMessageList
	if err := s.Client.List(ctx, &list, client.InNamespace(s.Namespace)); err != nil {
		return err
	}
	left := m.Times
	for i := range list.Items {
		o := &list.Items[i]
		if left == 0 {
			break
		}
		if o.Spec.SessionRef.Kind+"/"+o.Spec.SessionRef.Name != key(s.sessions[m.Session]) || o.Status.Outcome.Final() || o.Spec.Source.Type == api.SourceBoot {
			continue
		}
		if m.Kind == Recall {
			if err := s.patch(ctx, o, `{"metadata":{"annotations":{"`+api.RecallAnnotation+`":"chaos"}}}`); err != nil {
				return err
			}
			left--
			continue
		}
		s.mu.Lock()
		s.deleted[o.Name] = true
		s.mu.Unlock()
		return s.Client.Delete(ctx, o)
	}
	return nil
}

// annotate asks for a restart.
func (s *stage) annotate(ctx context.Context, obj testenv.Session, token string) error {
	return s.patch(ctx, obj, `{"metadata":{"annotations":{"`+api.RestartRequestedAnnotation+`":"`+token+`"}}}`)
}

func (s *stage) patch(ctx context.Context, obj client.Object, change string) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return s.Client.Patch(ctx, obj.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(change)))
}

// person is what somebody does at a terminal.
func (s *stage) person(ctx context.Context, m Mishap) error {
	t, p, err := s.pane(ctx, m.Session)
	if err != nil {
		return err
	}
	target := t.ID + ":." + p.ID
	switch m.Kind {
	case CopyMode:
		return s.command(ctx, "copy-mode", "-u", "-t", target)
	case InputOff:
		if err := s.command(ctx, "select-pane", "-d", "-t", target); err != nil {
			return err
		}
		pause(ctx, m.For)
		// Its server may be stopped, or gone with the pane.
		return s.command(context.WithoutCancel(ctx), "select-pane", "-e", "-t", target)
	case Split:
		// Its pane takes what would be typed into the active one, and closes itself.
		return s.command(ctx, "split-window", "-t", target, fmt.Sprintf(`timeout %.1f cat; exec tmux kill-pane -t "$TMUX_PANE"`, m.For.Seconds()))
	}
	args := []string{"-N", "-u", "-S", s.Socket, "attach", "-t", t.ID}
	if m.Kind == Watch {
		args = append(args, "-r")
	}
	cmd := exec.Command("tmux", args...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "TMUX=")
	terminal, err := faketest.Start(cmd, 60+m.Times*20, 15+m.Times*5)
	if err != nil {
		return err
	}
	pause(ctx, m.For)
	terminal.Close()
	return nil
}

func (s *stage) command(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*askWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-N", "-u", "-S", s.Socket}, args...)...)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("tmux %v: %w: %s", args, err, out)
	}
	return nil
}

// supervise starts an agent that has ended again, as a service manager does.
func (s *stage) supervise(ctx context.Context) {
	for {
		unlock := s.lock("agent")
		p := s.Agent
		unlock()
		select {
		case <-ctx.Done():
			return
		case <-p.Exited:
		}
		unlock = s.lock("agent")
		if ctx.Err() == nil {
			s.StartAgent()
			s.agents = append(s.agents, s.Agent)
		}
		unlock()
		if !pause(ctx, retryAfter) {
			return
		}
	}
}
