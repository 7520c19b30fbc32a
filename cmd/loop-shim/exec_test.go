package main_test

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/launch"
)

var _ = Describe("loop-shim exec", func() {
	It("is a static program", func() {
		f, err := elf.Open(shim)
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = f.Close() }()
		for _, p := range f.Progs {
			Expect(p.Type).NotTo(Equal(elf.PT_INTERP))
		}
	})

	DescribeTable("ends with the harness's status",
		func(code int) {
			ws := run(sh("exit " + strconv.Itoa(code))).status()
			Expect(ws.Exited()).To(BeTrue())
			Expect(ws.ExitStatus()).To(Equal(code))
		},
		Entry(nil, 0), Entry(nil, 1), Entry(nil, 7), Entry(nil, 143), Entry(nil, 255),
	)

	DescribeTable("ends by the harness's signal, without a core dump of its own",
		func(s syscall.Signal) {
			ws := run(sh(fmt.Sprintf("ulimit -c 0; kill -%d $$", s))).status()
			Expect(ws.Signaled()).To(BeTrue())
			Expect(ws.Signal()).To(Equal(s))
			Expect(ws.CoreDump()).To(BeFalse())
		},
		Entry(nil, syscall.SIGKILL), Entry(nil, syscall.SIGTERM), Entry(nil, syscall.SIGHUP), Entry(nil, syscall.SIGINT),
		Entry(nil, syscall.SIGQUIT), Entry(nil, syscall.SIGABRT), Entry(nil, syscall.SIGSEGV), Entry(nil, syscall.SIGPIPE),
		Entry(nil, syscall.SIGUSR1), Entry(nil, syscall.SIGALRM), Entry(nil, syscall.Signal(40)),
	)

	It("gives the harness its arguments, directory and environment, and uses the file up", func() {
		dir := GinkgoT().TempDir()
		f := sh(`pwd; printf '<%s>' "$0" "$@" "$TMUX" "$TMUX_PANE" "$SECRET" "$LOOP_UID" "$MINE" "$PWD"; printf '%s' "$BIG" | wc -c`)
		f.Argv = append(f.Argv, "zero", "one two", "a\nb", `$(id)"'`)
		f.Dir, f.UID, f.Unset = dir, "uid-7", []string{"SECRET"}
		f.Env = []string{"MINE=x;y", "BIG=" + strings.Repeat("b", 100_000)}
		path, err := launch.Write(GinkgoT().TempDir(), f)
		Expect(err).NotTo(HaveOccurred())
		p := runFile(path)
		Expect(p.status().ExitStatus()).To(BeZero())
		text := strings.ReplaceAll(p.Output(), "\r\n", "\n")
		Expect(text).To(Equal(dir + "\n<zero><one two><a\nb><$(id)\"'><><><><uid-7><x;y><" + dir + ">100000\n"))
		Expect(path).NotTo(BeAnExistingFile())
	})

	It("starts the harness in its own process group, session and terminal", func() {
		p := run(sh("sleep 1000"))
		Eventually(p.child).ShouldNot(BeZero())
		me, child := p.pid(), p.child()
		const group, session, terminal, foreground = 5, 6, 7, 8
		for _, field := range []int{group, session, terminal, foreground} {
			Expect(stat(child, field)).To(Equal(stat(me, field)))
		}
		Expect(stat(child, group)).To(Equal(strconv.Itoa(me)))
		Expect(stat(child, foreground)).To(Equal(strconv.Itoa(me)))
	})

	It("shows under its own name", func() {
		p := run(sh("sleep 1000"))
		Expect(os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid()))).To(BeEquivalentTo("loop-shim\n"))
	})

	It("T33: goes, with all that it starts, before the terminal server when memory is short, and no later than it would have", func() {
		adjusted := func(before string) string {
			f := sh("cat /proc/self/oom_score_adj")
			f.Dir, f.UID = "/", "uid-9"
			path, err := launch.Write(GinkgoT().TempDir(), f)
			Expect(err).NotTo(HaveOccurred())
			out, err := exec.Command("/bin/sh", "-c", `echo "$1" >/proc/self/oom_score_adj; exec "$2" exec "$3"`, "sh", before, shim, path).Output()
			Expect(err).NotTo(HaveOccurred())
			return strings.TrimSpace(string(out))
		}
		mine, err := os.ReadFile("/proc/self/oom_score_adj")
		Expect(err).NotTo(HaveOccurred())
		Expect(adjusted(strings.TrimSpace(string(mine)))).To(Equal("500"))
		Expect(adjusted("900")).To(Equal("900"))
	})

	It("hides the launch from the process list", func() {
		p := run(sh("sleep 1000; : hidden"))
		p.child()
		Expect(os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid()))).NotTo(ContainSubstring("hidden"))
	})

	It("finds a name on the PATH of the launch", func() {
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "agent-x"), []byte("#!/bin/sh\nexit 9\n"), 0o755)).To(Succeed())
		Expect(run(launch.File{Argv: []string{"agent-x"}, Env: []string{"PATH=.::/nowhere:" + dir}}).status().ExitStatus()).To(Equal(9))
	})

	DescribeTable("T26: says what, why and what to do when the harness cannot be executed",
		func(prepare func(dir string) []string, code int, says ...string) {
			p := run(launch.File{Argv: prepare(GinkgoT().TempDir()), Session: "loop-x"})
			Expect(p.status().ExitStatus()).To(Equal(code))
			text := p.Output()
			Expect(strings.TrimRight(text, "\r\n")).NotTo(ContainSubstring("\n"), "one line")
			for _, s := range append(says, `loop-shim: session "loop-x": cannot execute`) {
				Expect(text).To(ContainSubstring(s))
			}
		},
		Entry("a missing one", func(string) []string { return []string{"/nowhere/claude"} }, 127, `"/nowhere/claude"`, "Install the harness"),
		Entry("an unknown name", func(string) []string { return []string{"no-such-agent"} }, 127, "not found on PATH", "Install the harness"),
		Entry("a directory", func(dir string) []string { return []string{dir} }, 126, "permission denied", "chmod +x"),
		Entry("a file that is not executable", func(dir string) []string { return []string{write(dir, "#!/bin/sh\n", 0o600)} }, 126, "chmod +x"),
		Entry("a file that is no program", func(dir string) []string { return []string{write(dir, "\x00\x01", 0o700)} }, 126, "no program for this machine"),
		Entry("a script whose interpreter is missing", func(dir string) []string { return []string{write(dir, "#!/nowhere/node\n", 0o700)} }, 126, "interpreter or loader"),
		Entry("an argument over the kernel's limit", func(string) []string { return []string{"/bin/true", strings.Repeat("x", 1<<17)} }, 126, "128 KiB", "shorten them"),
		Entry("a name with control characters", func(string) []string { return []string{"/nowhere/\x1b[31m"} }, 127, `\x1b[31m`),
	)

	DescribeTable("says why a launch is unusable",
		func(prepare func(dir string) string, says string) {
			p := runFile(prepare(GinkgoT().TempDir()))
			Expect(p.status().ExitStatus()).To(Equal(125))
			Expect(p.Output()).To(ContainSubstring(says))
		},
		Entry("no file", func(dir string) string { return filepath.Join(dir, "x.json") }, "A launch file is used once"),
		Entry("garbage", func(dir string) string { return write(dir, "{", 0o600) }, "not valid JSON"),
		Entry("a file open to others", func(dir string) string { return write(dir, "{}", 0o644) }, "must be 0600"),
		Entry("T25: a missing directory", func(dir string) string {
			path, err := launch.Write(dir, launch.File{Argv: []string{"/bin/true"}, Dir: filepath.Join(dir, "gone"), UID: "u"})
			Expect(err).NotTo(HaveOccurred())
			return path
		}, "cannot enter the working directory"),
	)

	DescribeTable("explains itself",
		func(code int, says string, args ...string) {
			out, err := exec.Command(shim, args...).CombinedOutput()
			Expect(string(out)).To(ContainSubstring(says))
			if code == 0 {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			var exit *exec.ExitError
			Expect(err).To(BeAssignableToTypeOf(exit))
			Expect(err.(*exec.ExitError).ExitCode()).To(Equal(code))
		},
		Entry(nil, 0, "loop-shim exec FILE", "--help"),
		Entry(nil, 0, "loop-shim dev", "--version"),
		Entry(nil, 2, "loop-shim exec FILE"),
		Entry(nil, 2, "loop-shim exec FILE", "exec"),
		Entry(nil, 2, "loop-shim exec FILE", "dance"),
	)
})

// write makes a file and returns its path.
func write(dir, content string, mode os.FileMode) string {
	GinkgoHelper()
	path := filepath.Join(dir, "file")
	Expect(os.WriteFile(path, []byte(content), mode)).To(Succeed())
	Expect(os.Chmod(path, mode)).To(Succeed())
	return path
}

var _ = Describe("signals to the pane's process", func() {
	var p *pane
	BeforeEach(func() {
		p = run(helper("signals"))
		p.shows("ready")
	})
	// barrier waits until everything sent before has reached the harness.
	barrier := func(n int) {
		GinkgoHelper()
		p.signal(syscall.SIGUSR1)
		p.shows(fmt.Sprintf("got user defined signal 1 %d.", n))
	}
	count := func(name string) int { return strings.Count(p.Output(), "got "+name+" ") }

	DescribeTable("reach the harness once each when a process sent them",
		func(s syscall.Signal) {
			const times = 20
			for i := 1; i <= times; i++ {
				p.signal(s)
				p.shows(fmt.Sprintf("got %s %d.", s, i))
			}
			barrier(1)
			Expect(count(s.String())).To(Equal(times))
		},
		Entry(nil, syscall.SIGTERM), Entry(nil, syscall.SIGHUP), Entry(nil, syscall.SIGINT), Entry(nil, syscall.SIGQUIT),
	)

	DescribeTable("reach the harness once each when the terminal sent them, and the pane's process survives",
		func(key string, s syscall.Signal) {
			const times = 20
			for i := 1; i <= times; i++ {
				p.types(key)
				p.shows(fmt.Sprintf("got %s %d.", s, i))
			}
			barrier(1)
			Expect(count(s.String())).To(Equal(times))
			Expect(living(p.pid())).To(BeTrue())
		},
		Entry("^C", "\x03", syscall.SIGINT),
		Entry(`^\`, "\x1c", syscall.SIGQUIT),
	)

	It("do not stop it", func() {
		p.types("\x1a") // ^Z
		p.shows("^Z")
		p.signal(syscall.SIGTSTP)
		p.signal(syscall.SIGTTIN)
		p.signal(syscall.SIGTTOU)
		barrier(1)
		Expect(stat(p.pid(), 3)).NotTo(Equal("T"))
	})

	It("end with the harness", func() {
		p.signal(syscall.SIGUSR2)
		p.shows("got user defined signal 2 1.")
		p.signal(syscall.SIGUSR2)
		Expect(p.status().ExitStatus()).To(BeZero())
	})
})
