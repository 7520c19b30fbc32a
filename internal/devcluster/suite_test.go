package devcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		os.Exit(runHelper(dir))
	}
	os.Exit(m.Run())
}

func TestDevcluster(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(10 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "devcluster")
}

// binDir is the directory of the real binaries.
var binDir string

var _ = BeforeSuite(func() {
	binDir = ground.Assets(GinkgoTB())
	leaks := ground.Leaks()
	DeferCleanup(func() { Eventually(leaks).Should(Succeed()) })
})

// newDir is a fresh state directory, absent yet.
func newDir() string { return filepath.Join(GinkgoT().TempDir(), "state") }

func testOptions(dir string) Options {
	return Options{
		Dir: dir, BinDir: binDir, NoFsync: true,
		Log: func(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) },
	}
}

// start starts a control plane that the spec's end stops.
func start(o Options) *Cluster {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := Start(ctx, o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(c.Stop(ctx)).To(Succeed())
		Expect(Processes(o.Dir)).To(BeEmpty())
	}, NodeTimeout(10*time.Second))
	return c
}

// client returns a typed client whose connections end with the spec.
func client(cfg *rest.Config) *kubernetes.Clientset {
	GinkgoHelper()
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	http, err := rest.HTTPClientFor(cfg)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(http.CloseIdleConnections)
	cs, err := kubernetes.NewForConfigAndClient(cfg, http)
	Expect(err).NotTo(HaveOccurred())
	return cs
}

// pidOf returns the pid of the running child, 0 when it does not run.
func pidOf(dir, name string) int {
	GinkgoHelper()
	ps, err := Processes(dir)
	Expect(err).NotTo(HaveOccurred())
	for _, p := range ps {
		if p.Name == name {
			return p.PID
		}
	}
	return 0
}

// script writes a program into dir.
func script(dir, name, text string) {
	GinkgoHelper()
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755)).To(Succeed())
}

// helperDir makes the test binary a process that runs a control plane on a
// directory until it is killed; helperBin is its BinDir.
const (
	helperDir = "DEVCLUSTER_TEST_DIR"
	helperBin = "DEVCLUSTER_TEST_BIN"
)

func runHelper(dir string) int {
	c, err := Start(context.Background(), Options{Dir: dir, BinDir: os.Getenv(helperBin), NoFsync: true})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	select {
	case <-c.Done():
		fmt.Println(c.Err())
	case <-time.After(2 * time.Minute): // the spec kills it much earlier
		_ = c.Stop(context.Background())
	}
	return 1
}
