package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
)

// endTime is how long one of our programs may take to end.
const endTime = 10 * time.Second

// Process is a running program. What it prints is shown when its test fails.
type Process struct {
	*gexec.Session
}

// Run starts a command. Who starts it ends it.
func Run(cmd *exec.Cmd) *Process {
	GinkgoHelper()
	s, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	return &Process{s}
}

// PID is its process id.
func (p *Process) PID() int { return p.Command.Process.Pid }

// Stop ends it the way a person does, and insists that it ends.
func (p *Process) Stop() {
	GinkgoHelper()
	p.Interrupt()
	Eventually(p.Session, endTime).Should(gexec.Exit())
}

// Kill ends it with SIGKILL.
func (p *Process) Kill() {
	GinkgoHelper()
	p.Session.Kill()
	Eventually(p.Session, endTime).Should(gexec.Exit())
}

// CPUSeconds is the processor time that it and its ended children used so far.
func (p *Process) CPUSeconds() float64 {
	GinkgoHelper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	Expect(err).NotTo(HaveOccurred())
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+2:]))
	total := 0.0
	for _, i := range []int{11, 12, 13, 14} { // utime, stime, cutime, cstime
		var ticks float64
		_, err := fmt.Sscan(f[i], &ticks)
		Expect(err).NotTo(HaveOccurred())
		total += ticks
	}
	return total / 100
}
