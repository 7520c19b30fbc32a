package hook_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

// appendTo makes the test binary a process that appends notes to a journal.
const appendTo = "HOOK_TEST_APPEND_TO"

// notesEach is how many notes such a process appends.
const notesEach = 20

func TestMain(m *testing.M) {
	if path := os.Getenv(appendTo); path != "" {
		os.Exit(appendNotes(path))
	}
	os.Exit(m.Run())
}

func appendNotes(path string) int {
	for i := range notesEach {
		n := hook.Note{
			Time: time.Now(), Event: "Stop", ConversationID: strconv.Itoa(os.Getpid()),
			Source: strconv.Itoa(i), Error: fmt.Sprintf("%01000d", i),
		}
		if err := hook.Append(path, n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

func TestHook(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "hook")
}

var _ = BeforeEach(func() {
	leaks := ground.Leaks()
	DeferCleanup(func() { Eventually(leaks).Should(Succeed()) })
})
