package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/cgroup"
	"github.com/theloop-dev/the-loop/internal/harness/launch"
)

var _ = Describe("exec in a control group", func() {
	var g cgroup.Group
	BeforeEach(func() {
		h := cgroup.Open()
		if h.Problem() != nil {
			Skip("no control group can be made here: " + h.Problem().Error())
		}
		var err error
		g, err = h.Make(fmt.Sprintf("shim-%d", os.Getpid()), 0, os.Getpid())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() {
			_, err := g.Kill(context.Background(), func(int) bool { return false })
			Expect(errors.Join(err, g.Remove())).To(Succeed())
		})
	})
	in := func(f launch.File) launch.File {
		f.Groups = launch.Groups{Unified: g.Unified, Legacy: g.Legacy, Required: true}
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
		Expect(g.Kill(context.Background(), func(int) bool { return false })).To(HaveLen(2))
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

	It("T02: starts nothing where the bound of memory would not hold, and anything where there is none", func() {
		missing := in(sh("echo started"))
		if missing.Groups.Unified != "" {
			missing.Groups.Unified = filepath.Join(missing.Groups.Unified, "missing")
		}
		if missing.Groups.Legacy != "" {
			missing.Groups.Legacy = filepath.Join(missing.Groups.Legacy, "missing")
		}
		p := run(missing)
		Expect(p.status().ExitStatus()).To(Equal(125))
		Expect(p.Output()).To(And(ContainSubstring("not started without the bound of its memory"), ContainSubstring("no such file"), Not(ContainSubstring("started\r"))))
		missing.Groups.Required = false
		p = run(missing)
		Expect(p.status().ExitStatus()).To(Equal(0))
		Expect(p.Output()).To(Equal("started\r\n"))
	})
})
