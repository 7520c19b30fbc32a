package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/creack/pty"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/core"
	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

// desk is a person's terminal with a command running in it.
type desk struct {
	cmd  *exec.Cmd
	tty  *os.File
	seen *syncBuffer
	read chan struct{}
	// ended gets how the program ended.
	ended chan error
}

// sit runs the built program in a terminal, as large as a session has it without one, so
// that nothing of what an ended one shows is scrolled away.
func (s *stage) sit(bin string, args ...string) *desk {
	GinkgoHelper()
	d := &desk{cmd: exec.Command(filepath.Join(bin, "the-loop"), args...), seen: &syncBuffer{}, read: make(chan struct{}), ended: make(chan error, 1)}
	d.cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	var err error
	d.tty, err = pty.StartWithSize(d.cmd, &pty.Winsize{Rows: 51, Cols: 200})
	Expect(err).NotTo(HaveOccurred())
	go func() { defer close(d.read); _, _ = io.Copy(io.MultiWriter(d.seen, GinkgoWriter), d.tty) }()
	go func() { d.ended <- d.cmd.Wait() }()
	DeferCleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.read
		_ = d.tty.Close()
	})
	return d
}

// leaves detaches as a person does: once more where a question of tmux, from the keys
// before, takes the first key.
func (d *desk) leaves() {
	GinkgoHelper()
	var ended error
	Eventually(func() bool {
		select {
		case ended = <-d.ended:
			return true
		default:
			_, _ = d.tty.WriteString("\x02d")
			return false
		}
	}, time.Minute, 500*time.Millisecond).Should(BeTrue())
	Expect(ended).NotTo(HaveOccurred())
}

func (d *desk) types(keys string) {
	GinkgoHelper()
	_, err := d.tty.WriteString(keys)
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("attach and logs, with a real tmux", Ordered, func() {
	var (
		s      *stage
		server *tmux.Server
		bin    string
		dir    string
	)

	BeforeAll(func(ctx SpecContext) {
		s, bin = newStage(), ground.Programs(GinkgoTB(), "./cmd/the-loop")
		var err error
		dir, err = os.MkdirTemp("/tmp", "loop-attach-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		server, err = tmux.New(tmux.Config{Socket: filepath.Join(dir, "s")})
		Expect(err).NotTo(HaveOccurred())
		epoch, err := server.Ensure(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(server.Shutdown(context.Background(), epoch)).To(Succeed()) })
		for name, boot := range map[string]string{"build-1": core.ThisMachine().BootID, "far": "another-machine"} {
			s.create(&api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: api.SessionHostStatus{BootID: boot, Tmux: api.HostTmux{Socket: server.Socket()}}})
		}
	})

	// hosted is a session with a terminal of its own, in which cat repeats what is typed.
	hosted := func(name, program string, changes ...func(*api.StandingSession)) *api.StandingSession {
		GinkgoHelper()
		o := s.standing(name, alive(api.ReasonIdle, "at its prompt"), changes...)
		_, err := server.Spawn(context.Background(), tmux.SpawnRequest{
			Name: o.Status.TmuxTarget, UID: string(o.UID), Generation: "l1", Dir: dir, Argv: []string{"/bin/sh", "-c", program},
		})
		Expect(err).NotTo(HaveOccurred())
		return o
	}
	screen := func(o *api.StandingSession) func() string {
		return func() string { return s.run("", "standing", "logs", o.Name).Out }
	}

	It("replaces the terminal with the session, writable, and leaves it running", func() {
		o := hosted("live", "echo ready; exec cat")
		d := s.sit(bin, "standing", "attach", "live")
		Eventually(d.seen.String).Should(ContainSubstring("ready"))
		d.types("typed by a person\r")
		Eventually(screen(o)).Should(ContainSubstring("typed by a person\ntyped by a person"))
		d.leaves()
		Expect(screen(o)()).To(ContainSubstring("ready"))
	})

	It("reaches exactly the session that is named, not one whose name begins so", func() {
		one, twelve := hosted("exact-1", "echo this is one; exec cat"), hosted("exact-12", "echo this is twelve; exec cat")
		d := s.sit(bin, "standing", "attach", one.Name)
		Eventually(d.seen.String).Should(ContainSubstring("this is one"))
		d.types("for one\r")
		Eventually(screen(one)).Should(ContainSubstring("for one"))
		Expect(screen(twelve)()).NotTo(ContainSubstring("for one"))
	})

	It("watches only, when that is asked for", func() {
		o := hosted("watched", "echo ready; exec cat")
		d := s.sit(bin, "standing", "attach", "watched", "--read-only")
		Eventually(d.seen.String).Should(ContainSubstring("ready"))
		d.types("not to be seen\r")
		By("typing as somebody else, which is seen")
		other := s.sit(bin, "standing", "attach", "watched")
		Eventually(other.seen.String).Should(ContainSubstring("ready"))
		other.types("to be seen\r")
		Eventually(d.seen.String).Should(ContainSubstring("to be seen"))
		Expect(screen(o)()).NotTo(ContainSubstring("not to be seen"))
	})

	It("C096: is writable for a paused session", func() {
		o := hosted("paused", "echo ready; exec cat", func(o *api.StandingSession) { o.Spec.DeliveryPolicy = api.DeliveryPolicyDrop })
		a := s.run("", "standing", "attach", "paused", "--print")
		Expect(a).To(And(HaveField("Out", "tmux -S "+server.Socket()+" attach -t '=loop-standing-paused'\n"), HaveField("Err", "")))
		d := s.sit(bin, "standing", "attach", "paused")
		Eventually(d.seen.String).Should(ContainSubstring("ready"))
		d.types("still mine\r")
		Eventually(screen(o)).Should(ContainSubstring("still mine"))
	})

	DescribeTable("C097: is read-only for one that has ended, with a note, with and without the flag",
		func(name, program string, note string, change func(*api.StandingSession)) {
			o := hosted(name, program, change)
			Eventually(screen(o)).Should(ContainSubstring("the last word"))
			// What waits for a line ends once its words were seen: tmux may lose those of a program
			// that ends at once.
			Expect(exec.Command("tmux", "-S", server.Socket(), "send-keys", "-t", "="+o.Status.TmuxTarget+":", "Enter").Run()).To(Succeed())
			Eventually(func() string { return s.run("", "standing", "attach", name, "--print").Err }).Should(ContainSubstring(note))
			for _, args := range [][]string{{"standing", "attach", name}, {"standing", "attach", name, "--read-only"}} {
				a := s.run("", append(args, "--print")...)
				Expect(a.Out).To(ContainSubstring(" attach -r -t "))
				Expect(a.Err).To(And(ContainSubstring(note), ContainSubstring("read-only")))
				d := s.sit(bin, args...)
				Eventually(d.seen.String).Should(And(ContainSubstring("shown read-only"), ContainSubstring("the last word")))
				d.types("lost words\r")
				d.leaves()
			}
			Expect(screen(o)()).NotTo(ContainSubstring("lost words"))
		},
		Entry("stopped, its harness left running by policy", "closed", "echo the last word; exec cat", "it is stopped", func(o *api.StandingSession) { o.Spec.State = api.SessionStateStopped }),
		// tmux scrolls by a line to say that a pane is dead.
		Entry("ended by itself", "ended", "echo; echo the last word; read line", "its harness has ended", func(*api.StandingSession) {}),
	)

	It("says clearly what is not there, not yet there, or elsewhere", func() {
		s.standing("vanished", alive(api.ReasonIdle, "x"))
		Expect(s.run("", "standing", "attach", "vanished")).To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("there is no tmux session of vanished"))))
		s.standing("unborn", nil, func(o *api.StandingSession) { o.Status = api.StandingSessionStatus{} })
		Expect(s.run("", "standing", "attach", "unborn")).To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("no tmux session is recorded yet"))))
		s.standing("remote", alive(api.ReasonIdle, "x"), func(o *api.StandingSession) { o.Spec.HostName = "far" })
		a := s.run("", "standing", "attach", "remote")
		Expect(a.Code).To(Equal(1))
		Expect(a.Err).To(ContainSubstring(`ssh -t far "tmux -L the-loop attach -t '=loop-standing-remote'"`))
		By("refusing to attach to what is no terminal")
		hosted("piped", "exec cat")
		Expect(s.run("", "standing", "attach", "piped")).To(And(HaveField("Code", 2), HaveField("Err", ContainSubstring("the-loop sessions logs"))))
	})
})
