package session_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

func TestSession(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "session")
}

// Each spec ends with as many goroutines as it began with.
var _ = BeforeEach(func() {
	leaks := ground.Leaks()
	DeferCleanup(func() { Eventually(leaks).Should(Succeed()) })
})
