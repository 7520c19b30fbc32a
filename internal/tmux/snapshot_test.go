//go:build linux

package tmux

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/gomega"
)

var _ = with("Snapshot", func(bin string) {
	ctx := context.Background()

	It("shows every pane of every window, with stamps, markers and how a program ended", func() {
		f := started(bin)
		f.spawn("exits", "/bin/sh", "-c", "exit 7")
		f.spawn("falls", "/bin/sh", "-c", "kill -TERM $$")
		t := f.spawn("lives")
		f.person("split-window", "-t", "=lives:")
		f.person("new-window", "-t", "=lives:")
		f.person("select-pane", "-d", "-t", t.PaneID)
		f.person("copy-mode", "-t", t.PaneID)
		f.person("set-option", "-t", "=lives:", "@loop_pasted", "d1")
		f.person("set-option", "-t", "=lives:", "@loop_submitted", "d0")

		before := time.Now()
		lives := f.session("lives")
		Expect(f.snapshot().Taken).To(BeTemporally(">=", before))
		Expect(lives).To(And(
			HaveField("ID", t.SessionID), HaveField("UID", t.UID), HaveField("Generation", "1"),
			HaveField("Pasted", "d1"), HaveField("Submitted", "d0"), HaveField("Object", "standingsession/default/lives")))
		Expect(lives.Panes).To(HaveLen(3))
		Expect(lives.Live()).To(BeTrue())
		ours, ok := lives.Pane(t.PaneID)
		Expect(ok).To(BeTrue())
		Expect(ours).To(And(HaveField("Dead", false), HaveField("InputOff", true), HaveField("InMode", true)))
		Expect(ours.BracketPaste == nil).To(Equal(f.olderThan(parseVersion("3.7"))))
		Expect(syscall.Kill(ours.PID, 0)).To(Succeed())
		Expect(lives.Panes[2].WindowID).NotTo(Equal(ours.WindowID))

		exits := f.died("exits")
		Expect(*exits.Panes[0].ExitStatus).To(Equal(7))
		Expect(exits.Panes[0].ExitSignal).To(BeEmpty())
		if !f.olderThan(v33) {
			Expect(f.died("falls").Panes[0]).To(And(HaveField("ExitSignal", "SIGTERM"), HaveField("ExitStatus", BeNil())))
		}
	})

	It("N04, N09: survives names and stamps of all kinds that people give their own sessions", func() {
		f := started(bin)
		f.spawn("ours")
		names := []string{"é日本😀", "a|b|c", "LOOP-END|1|2|3", "with space", "quote'\"`$(x)", "#{session_id}##", "=eq", "-lead", "%1", "[glob]*"}
		for _, n := range names {
			_, _ = f.try("new-session", "-d", "-s", n, "--", "/bin/sleep", "infinity") // some versions refuse some
		}
		f.person("new-session", "-d", "-s", "junk", "--", "/bin/sleep", "infinity")
		stamps := map[string]string{
			"@loop_uid": "a|b", "@loop_gen": "x\nLOOP-PANE|$9|@9|%9|9|0|||0|0||u|||||fake", "@loop_pasted": "\x01\x1b[31m",
			"@loop_submitted": "é,}#{pid}", "@loop_object": "#(touch " + f.dir + "/ran)"}
		for option, value := range stamps {
			f.person("set-option", "-t", "=junk:", option, value)
		}
		f.person("set-option", "-t", "=ours:", "@loop_pasted", "1|2\n3")
		snap := f.snapshot()
		Expect(f.names()).To(ContainElements("ours", "junk", "a|b|c", "é日本😀", "with space"))
		Expect(f.names()).NotTo(ContainElement("fake"))
		Expect(strings.Fields(f.person("list-sessions", "-F", "#{session_id}"))).To(HaveLen(len(snap.Sessions) + 1))
		junk, _ := snap.ByName("junk")
		Expect(junk).To(And(HaveField("UID", ""), HaveField("Generation", "?"), HaveField("Pasted", "?"), HaveField("Submitted", "?"), HaveField("Object", "?")))
		ours, _ := snap.ByName("ours")
		Expect(ours.UID).NotTo(BeEmpty())
		Expect(ours).To(And(HaveField("Pasted", "?"), HaveField("Generation", "1")))
		Expect(filepath.Join(f.dir, "ran")).NotTo(BeAnExistingFile())
	})

	It("N01: tells prefix twins apart", func() {
		f := started(bin)
		one, twelve := f.spawn("loop-a-1"), f.spawn("loop-a-12")
		Expect(f.session("loop-a-1").UID).To(Equal(one.UID))
		Expect(outcome(f.KillSession(ctx, one))).To(Equal(Done))
		snap := f.snapshot()
		_, ok := snap.ByName("loop-a-1")
		Expect(ok).To(BeFalse())
		Expect(snap.ByUID(one.UID)).To(BeEmpty())
		Expect(snap.ByUID(twelve.UID)).To(HaveLen(1))
	})

	It("says no server when there was never one, nor a directory", func() {
		f := unstarted(bin, func(c *Config) { c.Socket = filepath.Join(filepath.Dir(c.Socket), "none", "s") })
		snap := f.snapshot()
		Expect(snap.Epoch.IsZero()).To(BeTrue())
		Expect(snap.Sessions).To(BeEmpty())
		Expect(snap.Taken).NotTo(BeZero())
		Expect(os.WriteFile(filepath.Join(f.dir, "none"), nil, 0o600)).To(Succeed())
		_, err := f.Snapshot(ctx)
		Expect(err).To(MatchError(ErrUnknown), "a path that cannot be a socket proves nothing")
	})

	It("T05, T06: after kill -9 of the server none of its 14 sessions is running, and 14 new ones are not the old", func() {
		f := started(bin)
		var old []Target
		for i := range 14 {
			old = append(old, f.spawn(fmt.Sprintf("loop-%d", i)))
		}
		killPID(f.epoch.PID)
		Eventually(func() (Epoch, error) { snap, err := f.Snapshot(ctx); return snap.Epoch, err }).Should(Equal(Epoch{}))
		Expect(f.snapshot().Sessions).To(BeEmpty())
		for _, t := range old {
			Expect(outcome(f.Paste(ctx, t, "d", []byte("x")))).To(Equal(Gone))
			Expect(outcome(f.Signal(ctx, t, syscall.SIGTERM))).To(Equal(Gone))
		}
		epoch, err := f.Ensure(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(epoch).NotTo(Equal(f.epoch))
		for i := range 14 {
			f.spawn(fmt.Sprintf("loop-%d", i))
		}
		Expect(f.snapshot().Sessions).To(HaveLen(14))
	})

	It("says unknown within the timeout while the server hangs, and knows again when it goes on", func() {
		f := started(bin)
		f.spawn("one")
		goOn := f.hang()
		began := time.Now()
		_, err := f.Snapshot(ctx)
		Expect(time.Since(began)).To(BeNumerically("<", f.timeout+drainDelay+2*time.Second))
		Expect(err).To(MatchError(ErrUnknown))
		Expect(err).To(MatchError(context.DeadlineExceeded))
		Expect(err.(*UnknownError).Reason).To(Equal(ReasonTimeout))
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		_, err = f.Snapshot(canceled)
		Expect(err.(*UnknownError).Reason).To(Equal(ReasonCanceled))
		goOn()
		Eventually(func() ([]Session, error) { snap, err := f.Snapshot(ctx); return snap.Sessions, err }).Should(HaveLen(1))
	})

	It("gets a removed socket back, with the sessions alive, also for a process that never spoke to the server", func() {
		f := started(bin)
		f.spawn("one")
		Expect(os.Remove(f.socket)).To(Succeed())
		Expect(f.snapshot().Epoch).To(Equal(f.epoch))
		Expect(f.names()).To(ConsistOf("one"))

		Expect(os.Remove(f.socket)).To(Succeed())
		other, err := New(Config{Socket: f.socket, Binary: bin})
		Expect(err).NotTo(HaveOccurred())
		Expect(other.Ensure(ctx)).To(Equal(f.epoch))

		Expect(os.Remove(f.socket)).To(Succeed())
		Expect(f.Ensure(ctx)).To(Equal(f.epoch))
		Expect(f.names()).To(ConsistOf("one"))
	})

	It("says unknown when the socket is gone and the living server does not make it anew", func() {
		f := started(bin)
		freeze(f.epoch.PID)
		Expect(os.Remove(f.socket)).To(Succeed())
		for range 2 {
			_, err := f.Snapshot(ctx)
			Expect(err).To(MatchError(ErrUnknown))
			Expect(err.(*UnknownError).Reason).To(Equal(ReasonSocketLost))
		}
		_, err := f.Ensure(ctx)
		Expect(err).To(MatchError(ErrUnknown))
		thaw(f.epoch.PID)
		Eventually(func() (Epoch, error) { snap, err := f.Snapshot(ctx); return snap.Epoch, err }).Should(Equal(f.epoch))
	})

	It("N19: says unknown, not absent, to a user who may not use the socket", func() {
		needRoot()
		f := started(bin)
		f.spawn("one")
		other := script(f.dir, "as-nobody", "exec setpriv --reuid=65534 --regid=65534 --clear-groups "+lookPath(bin)+` "$@"`)
		s, err := New(Config{Socket: f.socket, Binary: other})
		Expect(err).NotTo(HaveOccurred())
		_, err = s.Snapshot(ctx)
		Expect(err).To(MatchError(ErrUnknown))
		Expect(err.(*UnknownError).Reason).To(Equal(ReasonPermission), "%v", err)

		// Now the file lets everybody in, and the server itself decides (since 3.3).
		Expect(os.Chmod(f.dir, 0o755)).To(Succeed())
		Expect(os.Chmod(f.socket, 0o777)).To(Succeed())
		_, err = s.Snapshot(ctx)
		if !f.olderThan(v33) {
			Expect(err).To(MatchError(ErrUnknown))
			Expect(err.(*UnknownError).Reason).To(Equal(ReasonPermission), "%v", err)
		}
		Expect(f.names()).To(ConsistOf("one"))
	})

	It("does not take a listener that is no tmux for an empty server", func() {
		f := unstarted(bin)
		l := listenAndClose(f.socket)
		defer l()
		_, err := f.Snapshot(ctx)
		Expect(err).To(MatchError(ErrUnknown))
	})

	It("shows a window that a person linked into a session of his own in both, and ours stays ours", func() {
		f := started(bin)
		t := f.spawn("ours")
		f.person("new-session", "-d", "-t", "=ours", "-s", "theirs")
		snap := f.snapshot()
		theirs, _ := snap.ByName("theirs")
		Expect(theirs.UID).To(BeEmpty())
		_, ok := theirs.Pane(t.PaneID)
		Expect(ok).To(BeTrue())
		Expect(snap.ByUID(t.UID)).To(HaveLen(1))
	})

	It("lists 1,000 sessions at once", func() {
		f := started(bin)
		manySessions(f, 1000)
		snap := f.snapshot()
		Expect(snap.Sessions).To(HaveLen(1000))
		for i := range 1000 {
			s, ok := snap.ByName(fmt.Sprint("s", i))
			Expect(ok && s.UID == fmt.Sprint("u-", i) && len(s.Panes) == 1 && s.Live()).To(BeTrue(), "%+v", s)
		}
	})
})

// manySessions makes n stamped sessions, named s0 and so on.
func manySessions(f *fixture, n int) {
	const batch = 50
	for from := 0; from < n; from += batch {
		var cmds []command
		for i := from; i < min(from+batch, n); i++ {
			cmds = append(cmds, command{"new-session", "-d", "-s", fmt.Sprint("s", i), "-x", "80", "-y", "24", "--", "/bin/sleep", "infinity"},
				command{"set-option", "-t", fmt.Sprintf("=s%d:", i), uidOption, fmt.Sprint("u-", i)})
		}
		a, err := f.run(context.Background(), "many", cmds...)
		if err != nil || a.code != 0 {
			Fail(fmt.Sprintf("%v %+v", err, a), 1)
		}
	}
}
