package workitem_test

import (
	"regexp"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/workitem"
)

func TestWorkItem(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "workitem")
}

// The forms that every derived name must have, whatever the ref.
var (
	tmuxForm  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,199}$`)
	labelForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	slugForm  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,188}$`)
)

// anchor is the session that keeps the tmux server alive.
const anchor = "loop_anchor"

// ref parses what a test knows to be a ref.
func ref(s string) workitem.Ref {
	GinkgoHelper()
	r, err := workitem.Parse(s)
	Expect(err).NotTo(HaveOccurred())
	return r
}
