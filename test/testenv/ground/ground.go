// Package ground is what suites on every floor stand on: where the checkout, its
// programs and the control plane's are, and whether goroutines are left. It imports
// nothing of ours, so that the tests of any package can use it from the inside.
package ground

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// Root is the directory of the checkout.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	tb.Fatal("the test does not run in the checkout")
	return ""
}

// Assets is the directory of kube-apiserver and etcd: $KUBEBUILDER_ASSETS, else where
// `make controlplane` builds them.
func Assets(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		out, err := exec.Command("go", "run", "-C", filepath.Join(Root(tb), "hack", "controlplane"), ".", "-print-dir").Output()
		if err != nil {
			tb.Fatalf("where are the binaries of the control plane? set KUBEBUILDER_ASSETS: %v", err)
		}
		dir = strings.TrimSpace(string(out))
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		regular(tb, filepath.Join(dir, name))
	}
	return dir
}

// Kubectl is the kubectl on PATH, else the one that is built with the control plane.
func Kubectl(tb testing.TB) string {
	tb.Helper()
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path
	}
	path := filepath.Join(Assets(tb), "kubectl")
	regular(tb, path)
	return path
}

func regular(tb testing.TB, path string) {
	tb.Helper()
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		tb.Fatalf("%s is not there: run `make controlplane` first", path)
	}
}

// Programs is the directory of the built programs: $THE_LOOP_BIN, else a temporary one
// in which the packages, named from the root of the checkout, are built.
func Programs(tb testing.TB, packages ...string) string {
	tb.Helper()
	dir := os.Getenv("THE_LOOP_BIN")
	if dir != "" {
		return dir
	}
	dir = tb.TempDir()
	cmd := exec.Command("go", append([]string{"build", "-o", dir + "/"}, packages...)...)
	cmd.Dir, cmd.Env = Root(tb), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("building %s: %v\n%s", strings.Join(packages, " "), err, out)
	}
	return dir
}

// Leaks returns a check for goroutines that were started since and still run. It waits
// for a moment itself, and may be tried again.
func Leaks() func() error {
	// Ginkgo's own: it captures each spec's output when specs run in parallel.
	const interceptor = "github.com/onsi/ginkgo/v2/internal.(*genericOutputInterceptor).ResumeIntercepting.func1"
	ignore := []goleak.Option{
		goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction(interceptor), goleak.IgnoreAnyFunction(interceptor + ".1"),
	}
	return func() error { return goleak.Find(ignore...) }
}
