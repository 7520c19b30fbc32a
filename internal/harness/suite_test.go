package harness

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

func TestHarness(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "harness")
}

var _ = BeforeEach(func() {
	leaks := ground.Leaks()
	DeferCleanup(func() { Eventually(leaks).Should(Succeed()) })
})
