// Package apiserver is a real API server and etcd for suites that need no controller and no
// agent: they play those parts themselves.
package apiserver

import (
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

// New is a control plane with the CRDs of the checkout, not started yet. Who starts it stops
// it.
func New(tb testing.TB) *envtest.Environment {
	tb.Helper()
	return &envtest.Environment{
		BinaryAssetsDirectory:    ground.Assets(tb),
		CRDDirectoryPaths:        []string{filepath.Join(ground.Root(tb), "config", "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
}
