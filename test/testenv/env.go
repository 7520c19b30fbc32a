// Package testenv runs the built programs for ginkgo suites: a control plane with the
// controller (Env), and build hosts (Host), each with an agent of its own on a terminal
// server of its own. Everything is private to the test process, stands below one
// directory and ends with what asked for it.
package testenv

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/theloop-dev/the-loop/internal/devcluster"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

// Env is what the specs of a suite share.
type Env struct {
	// Root is the checkout, Bin the directory of the built programs, Assets that of the
	// control plane's, SuiteDir the suite's own.
	Root, Bin, Assets, SuiteDir string
	// Cluster is the control plane, Client an administrator of it.
	Cluster *devcluster.Cluster
	Client  client.Client
	// Controller is the running controller.
	Controller *Process

	kubectl string
	hosts   atomic.Int64
}

// Start starts the control plane and the controller of a suite, in its BeforeSuite.
// name is a part of the name of the suite's directory, and short.
func Start(ctx context.Context, name string) *Env {
	GinkgoHelper()
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(80 * time.Millisecond)
	tb := GinkgoTB()
	e := &Env{
		Root: ground.Root(tb), Assets: ground.Assets(tb), kubectl: ground.Kubectl(tb),
		Bin: ground.Programs(tb, "./cmd/the-loop", "./cmd/agent", "./cmd/controller", "./cmd/loop-shim", "./test/fakeharness"),
	}
	// Short, because a tmux socket's path is at most 107 bytes.
	dir, err := os.MkdirTemp("/tmp", "loop-"+name+"-")
	Expect(err).NotTo(HaveOccurred())
	e.SuiteDir, err = filepath.EvalSymlinks(dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(e.nothingLeft)
	// A harness that was just ended may still write for a moment.
	DeferCleanup(func() { Eventually(func() error { return os.RemoveAll(e.SuiteDir) }).Should(Succeed()) })
	e.Cluster, e.Client = StartCluster(ctx, tb, e.SuiteDir)
	e.Controller = e.runController()
	DeferCleanup(func() { e.Controller.Stop() })
	return e
}

// runController starts the suite's own controller. One that lost its lease in an outage
// would end, to be started again by a Deployment.
func (e *Env) runController() *Process {
	GinkgoHelper()
	return e.controller("--leader-elect=false")
}

// RestartController stops the suite's controller and starts it again.
func (e *Env) RestartController() {
	GinkgoHelper()
	e.Controller.Stop()
	e.Controller = e.runController()
}

// nothingLeft looks, when all is over, for processes that still know the suite's
// directory, by an argument or their environment: a terminal server, a harness, a control
// plane.
func (e *Env) nothingLeft() {
	Eventually(func() (left []string) {
		processes, err := filepath.Glob("/proc/[0-9]*")
		Expect(err).NotTo(HaveOccurred())
		for _, p := range processes {
			// What cannot be read has ended, or is not ours.
			argv, _ := os.ReadFile(filepath.Join(p, "cmdline"))
			environ, _ := os.ReadFile(filepath.Join(p, "environ"))
			if strings.Contains(string(argv)+string(environ), e.SuiteDir) {
				left = append(left, filepath.Base(p)+" "+strings.ReplaceAll(string(argv), "\x00", " "))
			}
		}
		return left
	}, 10*time.Second).Should(BeEmpty(), "processes are left")
}

// StartController starts one more controller, with the rights of its role. The end of
// the test stops it.
func (e *Env) StartController(args ...string) *Process {
	GinkgoHelper()
	p := e.controller(args...)
	DeferCleanup(p.Stop)
	return p
}

func (e *Env) controller(args ...string) *Process {
	GinkgoHelper()
	return e.Program("controller", []string{"KUBECONFIG=" + e.KubeconfigFor("theloop-controller")}, args...)
}

// Program starts one of our programs with env added to the environment of the test.
// Who starts it ends it.
func (e *Env) Program(name string, env []string, args ...string) *Process {
	GinkgoHelper()
	cmd := exec.Command(filepath.Join(e.Bin, name), args...)
	cmd.Env = append(os.Environ(), env...)
	return Run(cmd)
}

// Kubectl runs kubectl as an administrator, which must succeed, and returns what it
// printed.
func (e *Env) Kubectl(args ...string) string {
	GinkgoHelper()
	out, err := e.TryKubectl(args...)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

// TryKubectl is Kubectl for what may fail.
func (e *Env) TryKubectl(args ...string) (string, error) {
	cmd := exec.Command(e.kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.Cluster.Kubeconfig())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// KubeconfigFor writes a kubeconfig for one identity and returns its path.
func (e *Env) KubeconfigFor(user string, groups ...string) string {
	GinkgoHelper()
	cfg, err := e.Cluster.ConfigFor(user, groups...)
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(e.SuiteDir, strings.NewReplacer(":", "_", "/", "_").Replace(user)+".kubeconfig")
	Expect(clientcmd.WriteToFile(kubeconfig(cfg), path)).To(Succeed())
	return path
}

// Requests are the requests that the API server has answered so far.
func (e *Env) Requests() []devcluster.Request {
	GinkgoHelper()
	all, err := devcluster.ReadRequestLog(requestLog(e.SuiteDir))
	Expect(err).NotTo(HaveOccurred())
	return all
}
