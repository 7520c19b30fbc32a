//go:build linux

package tmux

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/gomega"
)

const ms = time.Millisecond

var _ = with("AttachCommand", func(bin string) {
	attached := func(f *fixture) func() string {
		return func() string { return f.person("list-clients", "-F", "#{client_session} #{client_readonly}") }
	}

	It("N11: leads to exactly the session that is named, and fails clearly when it is gone", func() {
		f := started(bin)
		t := f.spawn("loop-a-1")
		f.spawn("loop-a-12")
		line := f.AttachCommand("loop-a-1", false)
		Expect(line).To(Equal(f.command + " -S " + f.socket + " attach -t '=loop-a-1'"))
		person := typeLine(line)
		Eventually(attached(f)).Should(Equal("loop-a-1 0"))
		f.person("detach-client", "-s", "=loop-a-1")
		Expect(person.wait()).To(Succeed())

		watcher := typeLine(f.AttachCommand("loop-a-12", true))
		Eventually(attached(f)).Should(Equal("loop-a-12 1"))
		Expect(outcome(f.KillSession(GinkgoT().Context(), t))).To(Equal(Done))
		lost := typeLine(line)
		Expect(lost.wait()).NotTo(Succeed())
		Eventually(lost.shown).Should(ContainSubstring("can't find session: loop-a-1"))
		Expect(attached(f)()).To(Equal("loop-a-12 1"))
		f.person("detach-client", "-s", "=loop-a-12")
		Expect(watcher.wait()).To(Succeed())
	})

	It("quotes what a shell would read, and still leads there", func() {
		f := unstarted(bin, func(c *Config) { c.Socket = filepath.Join(filepath.Dir(c.Socket), "it's a socket") })
		var err error
		f.epoch, err = f.Ensure(GinkgoT().Context())
		Expect(err).NotTo(HaveOccurred())
		name := "a 'b' $HOME `id` ;&|"
		f.person("new-session", "-d", "-s", name, "--", "/bin/sleep", "infinity")
		id := f.snapshot().Sessions[0].ID
		person := typeLine(f.AttachCommand(f.snapshot().Sessions[0].Name, false))
		Eventually(func() string { return f.person("list-clients", "-F", "#{session_id}") }).Should(Equal(id))
		f.person("detach-client", "-s", id+":")
		Expect(person.wait()).To(Succeed())
	})

	It("C097: shows a note where who attaches sees it, with nothing of it run, and reads only", func() {
		f := started(bin)
		f.spawn("a")
		trap := filepath.Join(shortDir(), "trap")
		note := "100% #(touch " + trap + ") #S \\;"
		words := Announced([]string{f.command, "-S", f.socket, "attach", "-r", "-t", "=a"}, note)
		for i, w := range words {
			words[i] = shellQuote(w)
		}
		person := typeLine(strings.Join(words, " "))
		Eventually(person.shown).Should(ContainSubstring(note))
		Expect(attached(f)()).To(Equal("a 1"))
		f.person("detach-client", "-s", "=a")
		Expect(person.wait()).To(Succeed())
		Expect(trap).NotTo(BeAnExistingFile())
	})

	It("N17: says -L where that leads without any variable, and -S elsewhere", func() {
		GinkgoT().Setenv("TMUX_TMPDIR", "")
		name := fmt.Sprintf("lt-%d-%d", os.Getpid(), uidSerial.Add(1))
		socket, err := DefaultSocket(name)
		Expect(err).NotTo(HaveOccurred())
		plain := filepath.Dir(socket)
		switch info, err := os.Stat(plain); {
		case errors.Is(err, os.ErrNotExist): // tmux makes it, and leaves it; so does whoever else uses it by then
			DeferCleanup(func() { _ = os.Remove(plain) })
		case err == nil && info.Mode().Perm() != 0o700:
			Skip("the socket directory of this machine is not private")
		}
		f := unstarted(bin, func(c *Config) { c.Socket = socket })
		DeferCleanup(os.Remove, f.socket)
		f.epoch, err = f.Ensure(GinkgoT().Context())
		Expect(err).NotTo(HaveOccurred())
		f.spawn("a")
		line := f.AttachCommand("a", false)
		Expect(line).To(Equal(f.command + " -L " + name + " attach -t '=a'"))
		person := typeLine(line)
		Eventually(attached(f)).Should(Equal("a 0"))
		f.person("detach-client", "-s", "=a")
		Expect(person.wait()).To(Succeed())

		dir := shortDir()
		GinkgoT().Setenv("TMUX_TMPDIR", dir)
		socket, err = DefaultSocket(name)
		Expect(err).NotTo(HaveOccurred())
		s, err := New(Config{Socket: socket, Binary: bin})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.AttachCommand("a", true)).To(Equal(f.command + " -S " + socket + " attach -r -t '=a'"))
	})

	It("names the program that was configured when PATH has another one", func() {
		fake := script(shortDir(), "my tmux", "echo tmux 3.4\n")
		s, err := New(Config{Socket: "/tmp/s", Binary: fake})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.AttachCommand("a", false)).To(Equal("'" + fake + "' -S /tmp/s attach -t '=a'"))
	})
})

// gonePID reports whether a process has ended; a zombie has.
func gonePID(pid int) bool {
	state, _, err := procStat(pid)
	return err != nil || state == 'Z' || state == 'X'
}

// detachedServer starts a server that carries LOOP_UID, as one that was started by hand
// inside of a session would, and returns its pid.
func detachedServer(f *fixture, uid string) int {
	cmd := exec.Command(f.binary, "-u", "-S", f.socket, "-f", "/dev/null", "start-server", ";", "set-option", "-s", "exit-empty", "off")
	cmd.Env = append(f.clientEnv, "LOOP_UID="+uid)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	epoch, _, err := f.identify(GinkgoT().Context(), "test")
	Expect(err).NotTo(HaveOccurred())
	Expect(processEnv(epoch.PID, "LOOP_UID")).To(Equal(uid))
	return epoch.PID
}

// sleeperAs runs a process of another user with LOOP_UID in its environment.
func sleeperAs(user uint32, uid string) (stop func()) {
	cmd := exec.Command("/bin/sleep", "infinity")
	cmd.Dir = "/"
	cmd.Env = []string{"LOOP_UID=" + uid}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	Expect(cmd.Start()).To(Succeed())
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
