package cliconfig

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestCLIConfig(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "internal/cliconfig")
}
