package harness

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
)

func TestHarness(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "harness")
}

var _ = BeforeEach(func() {
	// What ginkgo itself starts in a parallel run is not ours.
	const interceptor = "github.com/onsi/ginkgo/v2/internal.(*genericOutputInterceptor).ResumeIntercepting"
	ignore := []goleak.Option{
		goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction(interceptor + ".func1"), goleak.IgnoreAnyFunction(interceptor + ".func1.1"),
	}
	DeferCleanup(func() {
		Eventually(func() error { return goleak.Find(ignore...) }).Should(Succeed())
	})
})
