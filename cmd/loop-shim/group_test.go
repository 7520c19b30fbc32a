package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/theloop-dev/the-loop/internal/cgroup"
	"github.com/theloop-dev/the-loop/internal/harness/launch"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
)

var _ = Describe("exec in a control group", func() {
	var g cgroup.Group
	BeforeEach(func() {
		h := cgroup.Open("")
		if h.Problem() != nil {
			Skip("no control group can be made here: " + h.Problem().Error())
		}
		var err error
		g, err = h.Make(fmt.Sprintf("shim-%d", os.Getpid()), 0, os.Getpid())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() {
			_, err := g.Kill(context.Background(), 0, func(int) bool { return false })
			Expect(errors.Join(err, g.Remove())).To(Succeed())
		})
	})
	in := func(f launch.File) launch.File {
		f.Groups = launch.Groups{Unified: g.Unified, Legacy: g.Legacy, Refused: filepath.Join(GinkgoT().TempDir(), "refused")}
		return f
	}
	groups := func(pid int) string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		Expect(err).NotTo(HaveOccurred())
		return string(b)
	}

	It("T02: puts the harness and what it starts there from the first, and stays outside itself", func() {
		p := run(in(sh("sleep 1000 & cat /proc/self/cgroup; echo ready; wait")))
		p.shows("ready")
		Expect(strings.Count(p.Output(), "the-loop-session-shim-")).To(Equal(strings.Count(fmt.Sprint(g), "the-loop-session-")), p.Output())
		Expect(groups(p.pid())).NotTo(ContainSubstring("the-loop-session-"))
		Expect(g.Processes()).To(And(HaveLen(2), ContainElement(p.child())))
	})

	It("T02: outlives the end of all that is there, and ends like it", func() {
		p := run(in(sh("sleep 1000 & echo ready; wait")))
		p.shows("ready")
		Expect(g.Kill(context.Background(), 0, func(int) bool { return false })).To(HaveLen(2))
		Expect(p.status().Signal().String()).To(Equal("killed"))
	})

	It("gives the harness its arguments and its environment, its name and its status as without", func() {
		f := in(launch.File{Argv: []string{"/bin/sh", "-c", `printf '<%s>' "$0" "$@" "$A" "$SECRET"; cat /proc/$$/comm; exit 9`, "zero", "", "a b", "join", "$(id)"}, Env: []string{"A=1"}, Unset: []string{"SECRET"}})
		p := run(f)
		Expect(p.status().ExitStatus()).To(Equal(9))
		Expect(p.Output()).To(ContainSubstring("<zero><><a b><join><$(id)><1><>sh"))
	})

	DescribeTable("says what, why and what to do as without", func(argv0 string, code int, says string) {
		p := run(in(launch.File{Argv: []string{argv0}, Session: "loop-x"}))
		Expect(p.status().ExitStatus()).To(Equal(code))
		Expect(p.Output()).To(And(HavePrefix(`loop-shim: session "loop-x": cannot execute`), ContainSubstring(says)))
	},
		Entry("a missing one", "/nowhere/claude", 127, "Install the harness"),
		Entry("a directory", "/tmp", 126, "permission denied"),
	)

	It("T02: starts the harness also where the group cannot be entered, and tells the agent where that would bound its memory", func() {
		missing := in(sh("echo started"))
		if missing.Groups.Unified != "" {
			missing.Groups.Unified = filepath.Join(missing.Groups.Unified, "missing")
		}
		if missing.Groups.Legacy != "" {
			missing.Groups.Legacy = filepath.Join(missing.Groups.Legacy, "missing")
		}
		p := run(missing)
		Expect(p.status().ExitStatus()).To(Equal(0))
		Expect(p.Output()).To(Equal("started\r\n"))
		note, err := os.ReadFile(missing.Groups.Refused)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(note)).To(And(HavePrefix("the session's control group could not be entered: "), ContainSubstring("no such file")))
		Expect(os.Remove(missing.Groups.Refused)).To(Succeed())

		By("no bound")
		missing.Groups.Refused = ""
		p = run(missing)
		Expect(p.status().ExitStatus()).To(Equal(0))
		Expect(p.Output()).To(Equal("started\r\n"))
	})

	It("T02: enters the group of cgroup v2 also where the kernel lets nothing be born there", func() {
		if g.Unified == "" {
			Skip("no cgroup v2 here")
		}
		f := in(sh("cat /proc/self/cgroup; echo ready; exec sleep 1000"))
		f.Groups.Legacy = ""
		f.Dir, f.UID = GinkgoT().TempDir(), "uid-1"
		path, err := launch.Write(f.Dir, f)
		Expect(err).NotTo(HaveOccurred())
		cmd := exec.Command(self(), shim, "exec", path)
		cmd.Env = append(os.Environ(), asHelper+"=no-clone3")
		t, err := faketest.Start(cmd, 100, 30)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(t.Close)
		p := &pane{t}
		p.shows("ready")
		Expect(p.Output()).To(ContainSubstring("0::/the-loop-session-shim-"))
		Expect(f.Groups.Refused).NotTo(BeAnExistingFile())
		Expect(groups(p.pid())).NotTo(ContainSubstring("the-loop-session-"))
	})
})

// withoutClone3 becomes another program, to which the kernel refuses clone3(2), as the filters
// of containers do.
func withoutClone3(argv []string) error {
	runtime.LockOSThread()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE3, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return errno
	}
	return unix.Exec(argv[0], argv, os.Environ())
}
