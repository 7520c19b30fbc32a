// Package e2e runs the real programs together: kube-apiserver and etcd, the
// controller, agents, tmux and the demo harness.
package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/theloop-dev/the-loop/test/testenv"
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	testenv.RunSuite(t, "the real programs together", 3)
}

var env *testenv.Env

var _ = BeforeSuite(func(ctx SpecContext) { env = testenv.Start(ctx, "e2e") }, NodeTimeout(5*time.Minute))

// get reads the object again.
func get[T client.Object](obj T) T {
	GinkgoHelper()
	env.Get(obj)
	return obj
}
