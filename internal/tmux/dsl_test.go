//go:build linux

package tmux

import "github.com/onsi/ginkgo/v2"

// The package has a Done of its own, so that ginkgo cannot be imported with a dot.
var (
	BeforeEach          = ginkgo.BeforeEach
	By                  = ginkgo.By
	DeferCleanup        = ginkgo.DeferCleanup
	Describe            = ginkgo.Describe
	DescribeTable       = ginkgo.DescribeTable
	Entry               = ginkgo.Entry
	Fail                = ginkgo.Fail
	GinkgoConfiguration = ginkgo.GinkgoConfiguration
	GinkgoHelper        = ginkgo.GinkgoHelper
	GinkgoRecover       = ginkgo.GinkgoRecover
	GinkgoT             = ginkgo.GinkgoT
	It                  = ginkgo.It
	RunSpecs            = ginkgo.RunSpecs
	Skip                = ginkgo.Skip
)
