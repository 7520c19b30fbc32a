//go:build linux

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

// asHelper makes the test binary a program that takes memory, as much as it gets.
const asHelper = "CGROUP_TEST_EATS"

// asNobody makes it one without privileges, which tries something with a group.
const (
	asNobody = "CGROUP_TEST_NOBODY"
	nobodyID = 65534
)

// byNobody is what such a process says.
func byNobody(what, dir string) string {
	GinkgoHelper()
	if os.Geteuid() != 0 {
		Skip("only root can become another user")
	}
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asNobody+"="+dir, "WHAT="+what)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}

func TestMain(m *testing.M) {
	if group := os.Getenv(asHelper); group != "" {
		if err := write(filepath.Join(group, procsFile), "0"); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		for all := [][]byte{}; ; {
			bite := make([]byte, 1<<20)
			for i := range bite {
				bite[i] = 1
			}
			if all = append(all, bite); len(all) > 512 {
				os.Exit(4)
			}
		}
	}
	if what := os.Getenv(asNobody); what != "" {
		if err := errors.Join(syscall.Setgid(nobodyID), syscall.Setuid(nobodyID)); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		if os.Getenv("WHAT") == "kill" {
			_, err := Group{Legacy: what}.Kill(context.Background(), 0, nobody)
			fmt.Print(errors.Is(err, ErrRefused), " ", err)
		} else {
			fmt.Print(delegated(what))
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestCgroup(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	RunSpecs(t, "internal/cgroup")
}

// here is where groups can be made on this machine, or the spec is skipped.
func here() *Host {
	GinkgoHelper()
	h := Open("")
	if h.Problem() != nil {
		Skip("no control group can be made here: " + h.Problem().Error())
	}
	return h
}

var counter int

// made is a group of this machine, which the spec removes.
func made(h *Host, limit int64) Group {
	GinkgoHelper()
	counter++
	g, err := h.Make(fmt.Sprintf("test-%d-%d", os.Getpid(), counter), limit, os.Getpid())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		_, err := g.Kill(context.Background(), 0, nobody)
		Expect(errors.Join(err, g.Remove())).To(Succeed())
		Expect(g.dirs()).NotTo(ContainElement(BeADirectory()))
	})
	return g
}

func nobody(int) bool { return false }

// inside starts a shell in a group, as loop-shim does.
func inside(g Group, script string) *exec.Cmd {
	GinkgoHelper()
	cmd := exec.Command("/bin/sh", "-c", script)
	if g.Legacy != "" {
		cmd.Args[2] = "echo 0 >" + filepath.Join(g.Legacy, procsFile) + "\n" + script
	}
	if g.Unified != "" {
		dir, err := os.Open(g.Unified)
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = dir.Close() }()
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	}
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// a directory that looks like a group of cgroup v2, with what the kernel puts into each.
func looksLike(dir string, files ...string) string {
	GinkgoHelper()
	Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
	for i := 0; i < len(files); i += 2 {
		Expect(os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o600)).To(Succeed())
	}
	return dir
}

func content(path ...string) string {
	GinkgoHelper()
	b, err := os.ReadFile(filepath.Join(path...))
	Expect(err).NotTo(HaveOccurred())
	return string(b)
}

// process is a /proc of one process, which is in a group of the one cgroup v2 mount.
func process(own, root, point string) string {
	GinkgoHelper()
	proc := GinkgoT().TempDir()
	looksLike(filepath.Join(proc, "self"), "cgroup", "0::"+own+"\n", "mountinfo", "30 23 0:26 "+root+" "+point+" rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n")
	looksLike(filepath.Join(proc, "7"), "cgroup", "0::"+own+"\n")
	for _, pid := range []string{"self", "7"} {
		dir := looksLike(filepath.Join(proc, pid, "ns"))
		for _, kind := range []string{"mnt", "pid"} {
			Expect(os.Symlink(kind+":[1]", filepath.Join(dir, kind))).To(Succeed())
		}
	}
	return proc
}

var _ = Describe("where groups are made", func() {
	DescribeTable("the directory of a group in a mount",
		func(root, path, want string) {
			point := GinkgoT().TempDir()
			looksLike(filepath.Join(point, "unit", "leaf"))
			if want != "" {
				want = filepath.Join(point, want)
			}
			Expect(mount{root: root, point: point}.dir(path)).To(Equal(want))
		},
		Entry("of the whole hierarchy", "/", "/unit/leaf", "unit/leaf"),
		Entry("of the root", "/", "/", "."),
		Entry("of a part, in a container with the host's names", "/kubepods/pod1", "/kubepods/pod1/unit", "unit"),
		Entry("of another part", "/kubepods/pod1", "/kubepods/pod10", ""),
		Entry("outside the namespace", "/", "/../other", ""),
		Entry("that is not there", "/", "/gone", ""),
		Entry("of a process without one", "/", "", ""),
	)

	It("reads what the kernel says of mounts and of a process", func() {
		Expect(parseMounts("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
			"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:3 - cgroup cgroup rw,memory\n" +
			"41 31 0:38 /a\\040b /mnt/c\\134d rw - cgroup2 none rw\nshort\n")).To(Equal([]mount{
			{root: "/", point: "/sys/fs/cgroup/memory", kind: "cgroup", options: []string{"rw", "memory"}},
			{root: "/a b", point: `/mnt/c\d`, kind: "cgroup2", options: []string{"rw"}},
		}))
		const own = "9:name=systemd:/s\n4:cpu,memory:/m\n0::/u:v\n"
		Expect([]string{parseOwn(own, ""), parseOwn(own, memory), parseOwn(own, "pids")}).To(Equal([]string{"/u:v", "/m", ""}))
	})

	It("T03: on cgroup v2 with a delegated memory controller is below the agent's group, whose processes move into a leaf", func() {
		point := GinkgoT().TempDir()
		looksLike(point, "cgroup.type", "domain", "cgroup.controllers", "cpu memory pids", controlFile, "", procsFile, "")
		proc := process("/", "/", point) // the root of a container's namespace
		h := open(proc, "", false)
		Expect(h.Problem()).NotTo(HaveOccurred())
		Expect(h.Describe()).To(Equal(point))
		Expect(content(point, controlFile)).To(Equal("+memory"))
		Expect(filepath.Join(point, Leaf)).To(BeADirectory())

		By("an agent that is in the leaf already")
		looksLike(filepath.Join(point, Leaf), procsFile, "")
		h = open(process("/"+Leaf, "/", point), "", false)
		Expect(h.Describe()).To(Equal(point))
		Expect(h.Problem()).NotTo(HaveOccurred())

		By("a group")
		dir := looksLike(filepath.Join(point, prefix+"u1"), "memory.max", "", "memory.oom.group", "", "memory.swap.max", "", procsFile, "",
			"memory.events", "low 0\nhigh 0\nmax 9\noom 0\noom_kill 2\noom_group_kill 0\n")
		g, err := h.Make("u1", 512<<20, 7)
		Expect(err).NotTo(HaveOccurred())
		Expect(g).To(Equal(Group{Unified: dir, Limit: 512 << 20, Kills: 2}))
		Expect([]string{content(dir, "memory.max"), content(dir, "memory.oom.group"), content(dir, "memory.swap.max")}).To(Equal([]string{"536870912", "1", "0"}))
		Expect(g.Killer()).To(Equal(KillerNone), "what was before is not counted")
		looksLike(dir, "memory.events", "oom 0\noom_kill 3\noom_group_kill 1\n")
		Expect(g.Killer()).To(Equal(KillerHost))
		looksLike(dir, "memory.events", "oom 1\noom_kill 3\noom_group_kill 1\n")
		Expect(g.Killer()).To(Equal(KillerOwn))
		g, err = h.Make("u1", 0, 7)
		Expect(err).NotTo(HaveOccurred())
		Expect(content(dir, "memory.max")).To(Equal("max"))
		Expect(g.Limit).To(BeZero())
	})

	It("moves every process of a group into the leaf", func() {
		h := here()
		if h.unified == "" {
			Skip("no cgroup v2 here")
		}
		g := made(h, 0)
		g.Legacy = ""
		cmd := inside(g, "sleep 300 & wait")
		Eventually(g.Processes).Should(HaveLen(2))
		leaf := filepath.Join(g.Unified, Leaf)
		Expect(empty(g.Unified, leaf)).To(Succeed())
		Expect(processes(g.Unified)).To(BeEmpty())
		Expect(processes(leaf)).To(And(HaveLen(2), ContainElement(cmd.Process.Pid)))
	})

	DescribeTable("T03: is nowhere, and nothing is changed, where that",
		func(prepare func(point string) (own string), says string) {
			point := GinkgoT().TempDir()
			h := open(process(prepare(point), "/", point), "", false)
			Expect(h.Problem()).To(MatchError(ContainSubstring(says)))
			Expect(filepath.Glob(filepath.Join(point, "*", Leaf))).To(BeEmpty())
			_, err := h.Make("u1", 1<<30, 7)
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("is not delegated", func(point string) string {
			looksLike(filepath.Join(point, "unit"), "cgroup.type", "domain", "cgroup.controllers", "memory", controlFile, "", procsFile, "1\n")
			return "/unit"
		}, "is not delegated to it: set Delegate=yes"),
		Entry("has no memory controller", func(point string) string {
			looksLike(point, "cgroup.controllers", "cpu", controlFile, "", procsFile, "")
			return "/"
		}, "has no memory controller: set Delegate=yes"),
		Entry("is not seen", func(string) string { return "/../elsewhere" }, "mount /sys/fs/cgroup, writable"),
		Entry("cannot be written", func(point string) string {
			looksLike(point, "cgroup.controllers", "memory")
			return "/"
		}, "the agent may not write"),
	)

	Describe("T03: where systemd starts the agent, and so starts it again while sessions live,", func() {
		unit := func(point, controls string) string {
			dir := looksLike(filepath.Join(point, "a.service"), "cgroup.type", "domain", "cgroup.controllers", "memory", controlFile, controls, procsFile, "1\n")
			if err := unix.Setxattr(dir, "user.delegate", []byte("1"), 0); errors.Is(err, unix.ENOTSUP) {
				Skip("no extended attributes here")
			}
			return dir
		}
		It("the group of its unit hands no controller down, and keeps its processes", func() {
			point := GinkgoT().TempDir()
			dir := unit(point, "")
			h := open(process("/a.service", "/", point), "", true)
			Expect(h.Problem()).To(MatchError(ContainSubstring("name it with --cgroup-parent")))
			Expect(h.Describe()).To(Equal(dir))
			Expect([]string{content(dir, controlFile), content(dir, procsFile)}).To(Equal([]string{"", "1\n"}))
			Expect(filepath.Join(dir, Leaf)).NotTo(BeADirectory())
			By("also where it is the root of a namespace")
			looksLike(point, "cgroup.controllers", "memory", controlFile, "", procsFile, "1\n")
			h = open(process("/", "/", point), "", true)
			Expect(h.Problem()).To(MatchError(ContainSubstring("name it with --cgroup-parent")))
			Expect(content(point, controlFile)).To(BeEmpty())
		})
		It("groups are below it where it hands the controller down already", func() {
			point := GinkgoT().TempDir()
			dir := unit(point, "cpu memory")
			h := open(process("/a.service", "/", point), "", true)
			Expect(h.Problem()).NotTo(HaveOccurred())
			Expect(h.Describe()).To(Equal(dir))
		})
		It("they are below the group that is named, whose processes move", func() {
			point := GinkgoT().TempDir()
			dir := unit(point, "")
			proc := process("/a.service", "/", point)
			parent := looksLike(filepath.Join(point, "b.service"), "cgroup.type", "domain", "cgroup.controllers", "memory", controlFile, "", procsFile, "")
			h := open(proc, parent, true)
			Expect(h.Problem()).NotTo(HaveOccurred())
			Expect(h.Describe()).To(Equal(parent))
			Expect(content(parent, controlFile)).To(Equal("+memory"))
			Expect(filepath.Join(parent, Leaf)).To(BeADirectory())
			Expect(content(dir, controlFile)).To(BeEmpty())
			By("not the agent's own")
			Expect(open(proc, dir, true).Problem()).To(MatchError(ContainSubstring("is the group in which the agent is started")))
			Expect(content(dir, controlFile)).To(BeEmpty())
			By("nor one that is none")
			Expect(open(proc, filepath.Join(point, "c"), true).Problem()).To(MatchError(ContainSubstring("is no group of a cgroup v2 hierarchy")))
			Expect(open(proc, GinkgoT().TempDir(), true).Problem()).To(MatchError(ContainSubstring("is no group of a cgroup v2 hierarchy")))
		})
		It("a group that belongs to the agent's user is not delegated for that", func() {
			dir := GinkgoT().TempDir()
			Expect(os.Chown(dir, nobodyID, nobodyID)).To(Succeed())
			Expect(byNobody("delegated", dir)).To(Equal("false"))
		})
	})

	DescribeTable("is nowhere for a terminal server that does not see it", func(kind string) {
		point := GinkgoT().TempDir()
		looksLike(point, "cgroup.controllers", "memory", controlFile, "memory", procsFile, "")
		proc := process("/", "/", point)
		h := open(proc, "", false)
		h.legacy = GinkgoT().TempDir()
		link := filepath.Join(proc, "7", "ns", kind)
		Expect(errors.Join(os.Remove(link), os.Symlink(kind+":[2]", link))).To(Succeed())
		g, err := h.Make("u1", 1<<30, 7)
		Expect(err).To(MatchError(ContainSubstring("another namespace (" + kind + ":[2])")))
		Expect(g.IsZero()).To(BeTrue())
	}, Entry("its files", "mnt"), Entry("its processes", "pid"))

	It("is nowhere for a terminal server that runs elsewhere, where the kernel lets nobody move its children", func() {
		point := GinkgoT().TempDir()
		looksLike(point, "cgroup.controllers", "memory", controlFile, "memory", procsFile, "")
		proc := process("/", "/", point)
		h := open(proc, "", false)
		Expect(h.Problem()).NotTo(HaveOccurred())
		looksLike(filepath.Join(proc, "7"), "cgroup", "0::/../other\n")
		g, err := h.Make("u1", 1<<30, 7)
		Expect(err).To(MatchError(ContainSubstring("the terminal server runs in the control group /../other")))
		Expect(g.IsZero()).To(BeTrue())
	})
})

var _ = Describe("a group", func() {
	It("T03: is ended at once, whatever its processes did, and alone", func() {
		h := here()
		a, b := made(h, 0), made(h, 0)
		inside(a, `trap "" TERM HUP; for i in 1 2 3; do setsid env -i /bin/sh -c 'trap "" TERM HUP; sleep 300 & sleep 300 & wait' & done; wait`)
		inside(b, "sleep 300 & wait")
		Eventually(a.Processes).Should(HaveLen(10))
		Eventually(b.Processes).Should(HaveLen(2))
		theirs := b.Processes()
		Expect(a.Remove()).To(Succeed())
		Expect(a.dirs()).To(HaveEach(BeADirectory()), "something lives in it")

		_, err := a.Kill(context.Background(), 0, func(pid int) bool { return pid == a.Processes()[9] })
		Expect(err).To(MatchError(ErrSpared))
		Expect(a.Processes()).To(HaveLen(10))

		ended, err := a.Kill(context.Background(), 0, nobody)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(ended)).To(BeNumerically(">=", 10))
		Expect(b.Processes()).To(Equal(theirs))
		Expect(a.Remove()).To(Succeed())
		Expect(a.dirs()).NotTo(ContainElement(BeADirectory()))
		Expect(a.Remove()).To(Succeed(), "again")
	})

	It("T22: is asked before it is ended", func() {
		g, said := made(here(), 0), filepath.Join(GinkgoT().TempDir(), "said")
		// A child that has the trap still, for a moment, would lose the signal.
		inside(g, `sleep 300 & trap 'echo asked >`+said+`.new; exit' TERM; >`+said+`; wait`)
		Eventually(said).Should(BeAnExistingFile())
		Eventually(g.Processes).Should(HaveLen(2))
		Expect(g.Kill(context.Background(), time.Minute, nobody)).To(HaveLen(2))
		Expect(said + ".new").To(BeAnExistingFile())
	})

	It("T22: with what may not be signalled is left, which is told at once", func() {
		h := here()
		if h.legacy == "" {
			Skip("on cgroup v2 who may write to a group may end what is in it")
		}
		g := made(h, 0)
		cmd := inside(g, "exec sleep 300")
		Eventually(Group{Legacy: g.Legacy}.Processes).Should(ContainElement(cmd.Process.Pid)) // which it enters last
		Expect(byNobody("kill", g.Legacy)).To(And(HavePrefix("true "), ContainSubstring("end them as root"), ContainSubstring(strconv.Itoa(cmd.Process.Pid))))
		By("one of another pid namespace, as the kernel shows it")
		_, err := Group{Legacy: looksLike(filepath.Join(GinkgoT().TempDir(), "g"), procsFile, "0\n")}.Kill(context.Background(), 0, nobody)
		Expect(err).To(MatchError(ErrRefused))
	})

	It("T22: that is on record for a session is its own, whatever somebody wrote there", func() {
		g := made(here(), 0)
		own := g.dirs()[0]
		dir := looksLike(filepath.Join(GinkgoT().TempDir(), strings.TrimPrefix(filepath.Base(own), prefix)))
		elsewhere := looksLike(filepath.Join(GinkgoT().TempDir(), filepath.Base(own)))
		link := filepath.Join(GinkgoT().TempDir(), filepath.Base(own))
		Expect(os.Symlink(own, link)).To(Succeed())
		for _, forged := range []string{filepath.Dir(own), elsewhere, link, own + "/../" + filepath.Base(own), "/"} {
			Expect(Group{Unified: forged, Legacy: forged, Kills: 1}.Save(dir)).To(Succeed())
			Expect(Load(dir)).To(BeZero(), forged)
		}
		other := looksLike(filepath.Join(GinkgoT().TempDir(), "other"))
		Expect(g.Save(other)).To(Succeed())
		Expect(Load(other)).To(BeZero())
	})

	It("T02: says that the kernel killed at its limit, and that of no other", func() {
		h := here()
		a, b := made(h, 48<<20), made(h, 48<<20)
		inside(b, "sleep 300")
		self, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		dir := a.Legacy
		if dir == "" {
			dir = a.Unified
		}
		Expect(a.Killer()).To(Equal(KillerNone))
		eater := exec.Command(self)
		eater.Env = append(os.Environ(), asHelper+"="+dir)
		out, err := eater.CombinedOutput()
		var exit *exec.ExitError
		Expect(errors.As(err, &exit)).To(BeTrue(), string(out))
		Expect(exit.Sys().(syscall.WaitStatus).Signal()).To(Equal(syscall.SIGKILL), string(out))
		Expect(a.Killer()).To(Equal(KillerOwn))
		Expect(b.Killer()).To(Equal(KillerNone))
		Expect(b.Processes()).NotTo(BeEmpty())

		By("the next launch, for which it is made anew")
		again, err := h.Make(strings.TrimPrefix(filepath.Base(dir), prefix), 48<<20, os.Getpid())
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Killer()).To(Equal(KillerNone))
	})

	It("T03: says that systemd-oomd killed it, by the mark that it leaves", func() {
		h := here()
		if h.unified == "" {
			Skip("no cgroup v2 here")
		}
		g := made(h, 0)
		if err := unix.Setxattr(g.Unified, "user.oomd_kill", []byte("1"), 0); errors.Is(err, unix.ENOTSUP) {
			Skip("a kernel before 5.7")
		}
		Expect(g.Killer()).To(Equal(KillerDaemon))
	})

	It("that a crash left is removed when it is empty, old and nobody's", func() {
		dir := looksLike(filepath.Join(GinkgoT().TempDir(), `the\x2dloop.service`)) // as systemd escapes a name
		h := &Host{unified: dir}
		long := time.Now().Add(-time.Hour)
		for _, name := range []string{"gone", "known", "new", "used"} {
			path := looksLike(filepath.Join(dir, prefix+name))
			if name == "used" {
				looksLike(path, procsFile, strconv.Itoa(os.Getpid())) // rmdir fails, as for a group with a process
			}
			if name != "new" {
				Expect(os.Chtimes(path, long, long)).To(Succeed())
			}
		}
		Expect(os.Chtimes(looksLike(filepath.Join(dir, "other")), long, long)).To(Succeed())
		Expect(h.Tidy(func(uid string) bool { return uid == "known" })).To(Succeed())
		left, err := os.ReadDir(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(ConsistOf(HaveField("Name()", "other"), HaveField("Name()", prefix+"known"), HaveField("Name()", prefix+"new"), HaveField("Name()", prefix+"used")))
	})

	It("is found again by what is on record, and ended by that", func() {
		g := made(here(), 0)
		dir := looksLike(filepath.Join(GinkgoT().TempDir(), strings.TrimPrefix(filepath.Base(g.dirs()[0]), prefix)))
		Expect(g.Save(dir)).To(Succeed())
		Expect(Load(dir)).To(Equal(g))
		cmd := inside(g, "sleep 300")
		Eventually(g.Processes).Should(ContainElement(cmd.Process.Pid))
		Expect(End(context.Background(), dir, 0, nobody)).To(ContainElement(cmd.Process.Pid))
		Expect(g.dirs()).NotTo(ContainElement(BeADirectory()))
		Expect(Load(dir).IsZero()).To(BeTrue())
		Expect(End(context.Background(), dir, 0, nobody)).To(BeEmpty())
	})
})
