// Package realharness runs the real programs together with the real harnesses, offline:
// their model is test/fakemodel. Nothing of the user who runs the tests is read or
// written.
package realharness

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/theloop-dev/the-loop/test/fakemodel/server"
	"github.com/theloop-dev/the-loop/test/testenv"
)

var (
	env      *testenv.Env
	model    *server.Model
	modelURL string
)

func TestRealHarness(t *testing.T) {
	RegisterFailHandler(Fail)
	testenv.RunSuite(t, "the real programs with the real harnesses", 2)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	env = testenv.Start(ctx, "real")
	startModel()
}, NodeTimeout(10*time.Minute))

// startModel serves the fake model on loopback.
func startModel() {
	GinkgoHelper()
	log, err := os.Create(filepath.Join(env.SuiteDir, "model.jsonl"))
	Expect(err).NotTo(HaveOccurred())
	model = server.New()
	model.Log = log
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	modelURL = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	srv := model.HTTP(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l)
	}()
	DeferCleanup(func() {
		cancel()
		Expect(srv.Close()).To(Succeed())
		<-served
		Expect(log.Close()).To(Succeed())
	})
}

// get reads the object again.
func get[T client.Object](obj T) T {
	GinkgoHelper()
	env.Get(obj)
	return obj
}
