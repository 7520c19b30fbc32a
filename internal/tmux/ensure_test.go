//go:build linux

package tmux

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

var _ = with("Ensure", func(bin string) {
	ctx := context.Background()

	It("T04, T27, T28: starts a server that is nobody's child, in its own session, in / and with a clean environment", func() {
		GinkgoT().Setenv("HOOK_SECRET", "hush")
		GinkgoT().Setenv("CLAUDECODE", "1")
		GinkgoT().Setenv("TMUX", "/tmp/elsewhere,1,0")
		GinkgoT().Setenv("LOOP_UID", "u-outer")
		f := started(bin)
		pid := f.epoch.PID
		Expect(IsServer(pid)).To(BeTrue())
		sid, err := unix.Getsid(pid)
		Expect(err).NotTo(HaveOccurred())
		Expect(sid).To(Equal(pid))
		Expect(os.Readlink(procPath(pid, "cwd"))).To(Equal("/"))
		for fd := range 3 {
			Expect(os.Readlink(procPath(pid, "fd/"+string(rune('0'+fd))))).To(Equal("/dev/null"))
		}
		t := f.spawn("clean", "/bin/sh", "-c", "env >env.txt; echo READY; exec sleep infinity")
		f.ready(t)
		s := f.session("clean")
		for _, where := range []string{
			fileText(procPath(pid, "environ")), fileText(procPath(s.Panes[0].PID, "environ")),
			fileText(filepath.Join(f.dir, "env.txt")), f.person("show-environment", "-g")} {
			Expect(where).NotTo(Or(ContainSubstring("HOOK_SECRET"), ContainSubstring("CLAUDECODE"), ContainSubstring("u-outer"), ContainSubstring("/tmp/elsewhere")))
		}
		Expect(strings.Split(fileText(filepath.Join(f.dir, "env.txt")), "\n")).To(And(
			ContainElement("LOOP_UID="+t.UID), ContainElement(ContainSubstring("UTF-8")),
			Not(ContainElement(HavePrefix("TMUX="))), Not(ContainElement(HavePrefix("TMUX_PANE=")))))
	})

	It("raises the limit of open files to 65536, or to the hard limit with a warning", func() {
		f := started(bin)
		var own, theirs unix.Rlimit
		Expect(unix.Getrlimit(unix.RLIMIT_NOFILE, &own)).To(Succeed())
		Expect(unix.Prlimit(f.epoch.PID, unix.RLIMIT_NOFILE, nil, &theirs)).To(Succeed())
		Expect(theirs.Cur).To(BeNumerically(">=", min(own.Max, 65536)))
		if own.Max < 65536 {
			Expect(f.Warnings()).To(ContainElement(ContainSubstring("the hard limit of open files")))
		}
	})

	It("T34: sets what we depend on, and sets it back when somebody changed it, without a restart", func() {
		f := started(bin)
		read := func() map[string]string {
			return map[string]string{
				"exit-empty":         f.person("show-options", "-sv", "exit-empty"),
				"exit-unattached":    f.person("show-options", "-sv", "exit-unattached"),
				"destroy-unattached": f.person("show-options", "-gv", "destroy-unattached"),
				"remain-on-exit":     f.person("show-options", "-gwv", "remain-on-exit"),
				"history-limit":      f.person("show-options", "-gv", "history-limit"),
				"update-environment": f.person("show-options", "-gv", "update-environment"),
				"set-clipboard":      f.person("show-options", "-sv", "set-clipboard"),
				"allow-rename":       f.person("show-options", "-gwv", "allow-rename"),
				"automatic-rename":   f.person("show-options", "-gwv", "automatic-rename"),
				"pane-died":          f.person("show-hooks", "-g", "pane-died"),
			}
		}
		want := map[string]string{"exit-empty": "off", "exit-unattached": "off", "destroy-unattached": "off", "remain-on-exit": "on",
			"history-limit": "20000", "update-environment": "", "set-clipboard": "off", "allow-rename": "off", "automatic-rename": "off",
			"pane-died": "pane-died[0] wait-for -S loop-ev"}
		Expect(read()).To(Equal(want))
		Expect(f.Drift()).To(BeEmpty())

		f.person("set-option", "-g", "destroy-unattached", "on")
		f.person("set-option", "-gw", "remain-on-exit", "off")
		f.person("set-option", "-g", "update-environment", "A B")
		f.person("set-hook", "-gu", "pane-died")
		f.person("set-option", "-g", "@loop_uid", "everybody")
		Expect(f.Ensure(ctx)).To(Equal(f.epoch))
		Expect(read()).To(Equal(want))
		Expect(f.person("show-options", "-gqv", "@loop_uid")).To(BeEmpty())
		Expect(f.Drift()).To(ConsistOf("destroy-unattached=on", "remain-on-exit=off", HavePrefix("update-environment="), "pane-died="))
		Expect(f.Ensure(ctx)).To(Equal(f.epoch))
		Expect(f.Drift()).To(BeEmpty())
	})

	It("T34: a session outlives a person who detaches, even while destroy-unattached is on for all", func() {
		f := started(bin)
		f.spawn("kept")
		f.person("set-option", "-g", "destroy-unattached", "on")
		person := typeLine(f.AttachCommand("kept", false))
		Eventually(func() string { return f.person("list-clients", "-F", "#{client_session}") }).Should(Equal("kept"))
		f.person("detach-client", "-s", "=kept")
		Expect(person.wait()).To(Succeed())
		Expect(f.names()).To(ConsistOf("kept"))
	})

	It("adopts a server that runs, with the sessions in it", func() {
		f := unstarted(bin)
		f.person("new-session", "-d", "-s", "before", "--", "/bin/sleep", "infinity")
		epoch, err := f.Ensure(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(f.names()).To(ConsistOf("before"))
		Expect(f.Drift()).To(BeEmpty())
		other, err := New(Config{Socket: f.socket, Binary: bin})
		Expect(err).NotTo(HaveOccurred())
		Expect(other.Ensure(ctx)).To(Equal(epoch))
	})

	It("T11: the server outlives its last session, the anchor included, and Ensure brings the anchor back", func() {
		f := started(bin)
		f.person("kill-session", "-t", "="+AnchorName+":")
		snap := f.snapshot()
		Expect(snap.Epoch).To(Equal(f.epoch))
		Expect(snap.Sessions).To(BeEmpty())
		Expect(f.Ensure(ctx)).To(Equal(f.epoch))
		Expect(f.person("list-sessions", "-F", "#{session_name}")).To(Equal(AnchorName))
		Expect(f.snapshot().Sessions).To(BeEmpty())
	})

	It("T13: the first session of a new server has the whole scrollback", func() {
		f := started(bin, func(c *Config) { c.HistoryLimit = 5000 })
		t := f.spawn("long", "/bin/sh", "-c", "seq 1 4000; echo READY; exec sleep infinity")
		f.ready(t)
		text, err := f.Capture(ctx, t, -1)
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(HavePrefix("1\n2\n3\n"))
		Expect(text).To(ContainSubstring("\n3999\n4000\nREADY"))
	})

	It("T31: reads no configuration of the user", func() {
		home := shortDir()
		Expect(os.WriteFile(filepath.Join(home, ".tmux.conf"), []byte("this is no command\nset -g @theirs yes\n"), 0o600)).To(Succeed())
		GinkgoT().Setenv("HOME", home)
		f := started(bin)
		Expect(f.person("show-options", "-gqv", "@theirs")).To(BeEmpty())
		f.spawn("plain")
		Expect(f.session("plain").Panes[0].InMode).To(BeFalse())
	})

	It("gives one server to eight processes and eight goroutines that start at once, and none of them ends it", func() {
		f := unstarted(bin)
		var mu sync.Mutex
		seen := map[string]int{}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				defer GinkgoRecover()
				out, err := helper("ensure", bin, f.socket).CombinedOutput()
				Expect(err).NotTo(HaveOccurred(), string(out))
				mu.Lock()
				defer mu.Unlock()
				seen[strings.TrimSpace(string(out))]++
			})
			all.Go(func() {
				defer GinkgoRecover()
				epoch, err := f.Ensure(ctx)
				Expect(err).NotTo(HaveOccurred())
				mu.Lock()
				defer mu.Unlock()
				seen[epoch.String()]++
			})
		}
		all.Wait()
		Expect(seen).To(HaveLen(1))
		Expect(seen).To(HaveKeyWithValue(f.snapshot().Epoch.String(), 16))
		Expect(f.person("list-sessions", "-F", "#{session_name}")).To(Equal(AnchorName))
	})

	It("N19: makes the socket's directory private, and refuses one that is not", func() {
		parent := shortDir()
		at := func(dir string) error {
			s, err := New(Config{Socket: filepath.Join(dir, "s"), Binary: bin})
			Expect(err).NotTo(HaveOccurred())
			_, err = s.Ensure(ctx)
			return err
		}
		open, link, file, foreign := filepath.Join(parent, "open"), filepath.Join(parent, "link"), filepath.Join(parent, "file"), filepath.Join(parent, "foreign")
		Expect(os.Mkdir(open, 0o700)).To(Succeed())
		Expect(os.Chmod(open, 0o755)).To(Succeed())
		Expect(at(open)).To(MatchError(And(ContainSubstring("unsafe permissions 0755"), ContainSubstring("chmod 700"))))
		Expect(os.Symlink(open, link)).To(Succeed())
		Expect(at(link)).To(MatchError(ContainSubstring("must be a directory")))
		Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		Expect(at(file)).To(MatchError(ContainSubstring("cannot be made")))
		if os.Geteuid() == 0 {
			Expect(os.Mkdir(foreign, 0o700)).To(Succeed())
			Expect(os.Chown(foreign, 12345, 12345)).To(Succeed())
			Expect(at(foreign)).To(MatchError(ContainSubstring("belongs to user 12345")))
		}
		f := unstarted(bin, func(c *Config) { c.Socket = filepath.Join(filepath.Dir(c.Socket), "new", "s") })
		_, err := f.Ensure(ctx)
		Expect(err).NotTo(HaveOccurred())
		info, err := os.Stat(filepath.Dir(f.socket))
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o700)))
	})

	It("takes the place of a socket that a crashed server left", func() {
		f := started(bin)
		killPID(f.epoch.PID)
		Expect(f.socket).To(BeAnExistingFile())
		var epoch Epoch
		Eventually(func() (err error) { epoch, err = f.Ensure(ctx); return err }).Should(Succeed())
		Expect(epoch.PID).NotTo(Equal(f.epoch.PID))
	})

	It("does not start a second server while the first one hangs", func() {
		f := started(bin)
		goOn := f.hang()
		_, err := f.Ensure(ctx)
		Expect(err).To(MatchError(ErrUnknown))
		goOn()
		Eventually(func() (Epoch, error) { return f.Ensure(ctx) }).Should(Equal(f.epoch))
	})

	It("says why no server came up", func() {
		dir := shortDir()
		broken := script(dir, "tmux", `case "$*" in -V) echo "tmux 3.4";; *-D*) exit 3;; *) exec `+lookPath(bin)+` "$@";; esac`)
		s, err := New(Config{Socket: filepath.Join(dir, "s"), Binary: broken, Timeout: 300 * time.Millisecond})
		Expect(err).NotTo(HaveOccurred())
		_, err = s.Ensure(ctx)
		Expect(err).To(MatchError(And(ContainSubstring("no server came up"), ContainSubstring("exit status 3"))))
	})

	It("T08: refuses a server that is too old, and one that speaks another protocol, and says what to do", func() {
		f := started(bin)
		old := script(f.dir, "old", `case "$*" in -V) echo "tmux 3.4";; *) echo "LOOP-END|12|13|3.1c";; esac`)
		s, err := New(Config{Socket: f.socket, Binary: old})
		Expect(err).NotTo(HaveOccurred())
		_, err = s.Ensure(ctx)
		Expect(err).To(MatchError(And(ContainSubstring("server is version 3.1c"), ContainSubstring("restart the server"))))

		stranger := script(f.dir, "stranger", `case "$*" in -V) echo "tmux 3.5a";; *) echo "server exited unexpectedly" >&2; exit 1;; esac`)
		s, err = New(Config{Socket: f.socket, Binary: stranger})
		Expect(err).NotTo(HaveOccurred())
		for _, call := range []func() error{
			func() error { _, err := s.Ensure(ctx); return err },
			func() error { _, err := s.Snapshot(ctx); return err },
		} {
			var u *UnknownError
			err := call()
			Expect(err).To(MatchError(ErrUnknown))
			Expect(err).To(BeAssignableToTypeOf(u))
			Expect(err.(*UnknownError).Reason).To(Equal(ReasonVersionMismatch))
			Expect(err).To(MatchError(And(ContainSubstring("tmux before 3.6"), ContainSubstring(processExe(f.epoch.PID)))))
		}
		Expect(f.snapshot().Epoch).To(Equal(f.epoch))
	})
})

var _ = with("Shutdown", func(bin string) {
	ctx := context.Background()

	It("ends the server of this epoch and its sessions, and is content when it is gone", func() {
		f := started(bin)
		f.spawn("one")
		Expect(f.Shutdown(ctx, f.epoch)).To(Succeed())
		Expect(f.seen.epoch).To(Equal(f.epoch))
		Expect(processAlive(f.epoch.PID, f.seen.start)).To(BeFalse())
		Expect(f.snapshot().Epoch.IsZero()).To(BeTrue())
		Expect(f.Shutdown(ctx, f.epoch)).To(Succeed())
	})

	It("leaves a server of another epoch alone", func() {
		f := started(bin)
		Expect(f.Shutdown(ctx, Epoch{PID: f.epoch.PID, StartTime: f.epoch.StartTime + 1})).To(MatchError(ErrRefused))
		Expect(f.Shutdown(ctx, Epoch{})).To(MatchError(ContainSubstring("epoch is zero")))
		Expect(f.snapshot().Epoch).To(Equal(f.epoch))
	})

	It("says that it does not know when the server does not answer", func() {
		f := started(bin)
		f.timeout = 200 * time.Millisecond // which a start may need
		freeze(f.epoch.PID)
		Expect(f.Shutdown(ctx, f.epoch)).To(MatchError(ErrUnknown))
	})
})

// freeze stops a process that a test started, as a server under a debugger or a stuck disk.
func freeze(pid int) {
	GinkgoHelper()
	Expect(syscall.Kill(pid, syscall.SIGSTOP)).To(Succeed())
	Eventually(func() (byte, error) { state, _, err := procStat(pid); return state, err }).Should(Equal(byte('T')))
}

func thaw(pid int) {
	GinkgoHelper()
	Expect(syscall.Kill(pid, syscall.SIGCONT)).To(Succeed())
}

func fileText(path string) string {
	GinkgoHelper()
	data, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

func lookPath(bin string) string {
	GinkgoHelper()
	path, _, err := findBinary(bin)
	Expect(err).NotTo(HaveOccurred())
	return path
}
