package main

import (
	"bytes"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/theloop-dev/the-loop/internal/core"
	"github.com/theloop-dev/the-loop/test/testenv/apiserver"
)

func TestTheLoop(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "cmd/the-loop")
}

// k8s is a client of a real API server without controller and agent: what the tests
// read is what was written.
var k8s client.WithWatch

// apiServer is how it is reached.
var apiServer *rest.Config

var _ = BeforeSuite(func() {
	env := apiserver.New(GinkgoTB())
	cfg, err := env.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	scheme, err := core.Scheme()
	Expect(err).NotTo(HaveOccurred())
	cfg.QPS = -1
	apiServer = cfg
	k8s, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})

// syncBuffer is what a command prints while a test looks on.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// String implements fmt.Stringer.
func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
