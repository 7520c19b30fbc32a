package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

const listed = 200

// BenchmarkCommandLine measures whole runs of the command line as a person waits for
// them, against kubectl doing the same in the same run: a list of 200 sessions (to be
// below 150 ms), and a create until it is accepted (below 1 s).
func BenchmarkCommandLine(b *testing.B) {
	dir, err := os.MkdirTemp("/tmp", "loop-bench-")
	check(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	cluster, c := testenv.StartCluster(b.Context(), b, dir)
	run := func(b *testing.B, program string, args ...string) time.Duration {
		b.Helper()
		cmd := exec.CommandContext(b.Context(), program, args...)
		// kubectl keeps what it discovers, as it does for a person.
		cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), "HOME="+dir)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(began)
		if err != nil {
			b.Fatalf("%v: %v\n%s", args, err, out)
		}
		return took
	}
	ours, kubectl := filepath.Join(ground.Programs(b, "./cmd/the-loop"), "the-loop"), ground.Kubectl(b)
	for i := range listed {
		s := &api.WorkItemSession{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("github-octo-repo-%d", i+1)}}
		s.Spec.WorkItem = api.WorkItem{Provider: "github", Owner: "octo", Repo: "repo", Number: int64(i + 1)}
		check(b, c.Create(b.Context(), s))
	}
	compare := func(b *testing.B, what string, ourArgs, theirArgs func(i int) []string) {
		b.Helper()
		// What is read from disk for the first time is nobody's.
		run(b, ours, ourArgs(-1)...)
		run(b, kubectl, theirArgs(-1)...)
		var we, they time.Duration
		for i := range b.N {
			we += run(b, ours, ourArgs(i)...)
			they += run(b, kubectl, theirArgs(i)...)
		}
		b.ReportMetric(float64(we.Milliseconds())/float64(b.N), "ms/"+what)
		b.ReportMetric(float64(we)/float64(they), "x-of-kubectl")
	}
	b.Run("list", func(b *testing.B) {
		compare(b, "list",
			func(int) []string { return []string{"sessions", "list"} },
			func(int) []string { return []string{"get", "worksessions"} })
	})
	b.Run("create", func(b *testing.B) {
		clear := func() {
			check(b, c.DeleteAllOf(b.Context(), &api.StandingSession{}, client.InNamespace("default")))
		}
		clear()
		manifest := func(i int) string {
			path := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
			check(b, os.WriteFile(path, fmt.Appendf(nil, "apiVersion: theloop.dev/v1alpha1\nkind: StandingSession\nmetadata: {name: theirs-%d}\nspec: {}\n", i+1), 0o600))
			return path
		}
		compare(b, "create",
			func(i int) []string { return []string{"standing", "create", fmt.Sprintf("ours-%d", i+1), "--no-wait"} },
			func(i int) []string { return []string{"create", "-f", manifest(i)} })
		clear()
	})
}
