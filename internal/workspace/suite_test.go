package workspace

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"

	"github.com/theloop-dev/the-loop/internal/workitem"
)

// helperVariable makes the test binary a process that prepares checkouts.
const helperVariable = "LOOP_WORKSPACE_TEST_HELPER"

// helperJob is what such a process does: one Prepare a request, all at once.
type helperJob struct {
	Root, Git string
	Strategy  Strategy
	Requests  []Request
}

func TestMain(m *testing.M) {
	if job := os.Getenv(helperVariable); job != "" {
		os.Exit(help(job))
	}
	os.Exit(m.Run())
}

func help(job string) int {
	var j helperJob
	if err := json.Unmarshal([]byte(job), &j); err != nil {
		fmt.Println(err)
		return 2
	}
	m, err := New(Config{Root: j.Root, Git: j.Git, Strategy: j.Strategy})
	if err != nil {
		fmt.Println(err)
		return 2
	}
	code := 0
	var group sync.WaitGroup
	var lock sync.Mutex
	for _, r := range j.Requests {
		group.Go(func() {
			c, err := m.Prepare(context.Background(), r)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				code = 1
				fmt.Println("ERROR", err)
				return
			}
			fmt.Println(c.Path)
		})
	}
	group.Wait()
	return code
}

func (f *fixture) helper(j helperJob) *exec.Cmd {
	GinkgoHelper()
	exe, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	data, err := json.Marshal(j)
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(exe)
	cmd.Env = append(f.environ(), helperVariable+"="+string(data))
	return cmd
}

func TestWorkspace(t *testing.T) {
	if flag.Lookup("test.count").Value.String() != "1" {
		// Ginkgo runs a suite once in a process: for go test -count=5 each has its own.
		args := []string{"-test.run=^TestWorkspace$", "-test.count=1"}
		for _, a := range os.Args[1:] {
			if strings.HasPrefix(strings.TrimLeft(a, "-"), "ginkgo.") {
				args = append(args, a)
			}
		}
		if out, err := exec.Command(os.Args[0], args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = 10 * time.Minute
	RunSpecs(t, "workspace", suite, reporter)
}

var _ = BeforeEach(func() {
	ignore := goleak.IgnoreCurrent()
	DeferCleanup(func() {
		Eventually(func() error { return goleak.Find(ignore) }).WithTimeout(5 * time.Second).Should(Succeed())
	})
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(5 * time.Millisecond)
})

// fixture is a root, and a host of repositories in a directory: git's own insteadOf leads
// there from every URL that is built.
type fixture struct {
	*Manager
	dir, hosts, undo string
	cfg              Config
}

func newFixture(strategy Strategy, change ...func(*Config)) *fixture {
	GinkgoHelper()
	dir, err := filepath.EvalSymlinks(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	f := &fixture{dir: dir, hosts: filepath.Join(dir, "hosts"), undo: filepath.Join(dir, "undo")}
	f.cfg = Config{Root: filepath.Join(dir, "root"), Strategy: strategy, Env: f.environ(), Timeout: time.Minute}
	for _, c := range change {
		c(&f.cfg)
	}
	f.Manager = f.open(f.cfg)
	return f
}

func (f *fixture) open(cfg Config) *Manager {
	GinkgoHelper()
	m, err := New(cfg)
	Expect(err).NotTo(HaveOccurred())
	return m
}

// environ has neither the configuration of whoever runs the tests nor the network.
func (f *fixture) environ(extra ...string) []string {
	base := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + f.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	settings := [][2]string{
		{"url." + f.hosts + "/github.com/.insteadOf", "https://github.com/"},
		{"url." + f.hosts + "/github.com/.insteadOf", "git@github.com:"},
		{"url." + f.hosts + "/ghe/.insteadOf", "https://ghe.example.com:8443/"},
		{"uploadpack.allowAnySHA1InWant", "true"},
		{"init.defaultBranch", "main"},
		{"stash.showIncludeUntracked", "true"},
	}
	base = append(base, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings)))
	for i, kv := range settings {
		base = append(base, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, kv[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, kv[1]))
	}
	return append(base, extra...)
}

// sh is what a person or an agent does with git.
func (f *fixture) sh(dir string, args ...string) string {
	GinkgoHelper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, f.environ()
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "git %q: %s", args, out)
	return strings.TrimSuffix(string(out), "\n")
}

// repository makes a repository on github.com with one commit on main.
func (f *fixture) repository(name string) string { return f.repositoryAt("github.com", name) }

func (f *fixture) repositoryAt(host, name string) string {
	GinkgoHelper()
	bare := filepath.Join(f.hosts, host, name+".git")
	f.sh("", "init", "-q", "--bare", bare)
	f.push(bare, "main", map[string]string{"README": name + "\n", "a.txt": "one\n", "dir/b.txt": "two\n", ".gitignore": "*.ignored\n"})
	return bare
}

// push commits files to a branch of a bare repository.
func (f *fixture) push(bare, branch string, files map[string]string) string {
	GinkgoHelper()
	work, err := os.MkdirTemp(f.dir, "push-")
	Expect(err).NotTo(HaveOccurred())
	defer os.RemoveAll(work)
	f.sh("", "clone", "-q", bare, work)
	if branch != "main" {
		start := "HEAD"
		if f.sh(work, "branch", "--remotes", "--list", "origin/"+branch) != "" {
			start = "origin/" + branch
		}
		f.sh(work, "checkout", "-q", "--no-track", "-B", branch, start)
	}
	for name, content := range files {
		write(filepath.Join(work, name), content)
	}
	f.sh(work, "add", "-A")
	f.sh(work, "commit", "-q", "-m", "on "+branch)
	f.sh(work, "push", "-q", "origin", "HEAD:refs/heads/"+branch)
	return f.sh(work, "rev-parse", "HEAD")
}

// try is sh for what may fail.
func (f *fixture) try(dir string, args ...string) error {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, f.environ()
	return cmd.Run()
}

func write(path, content string) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	Expect(os.WriteFile(path, []byte(content), 0o644)).To(Succeed())
}

func read(path string) string {
	GinkgoHelper()
	data, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

func ref(s string) workitem.Ref {
	GinkgoHelper()
	r, err := workitem.Parse(s)
	Expect(err).NotTo(HaveOccurred())
	return r
}

func (f *fixture) prepare(req Request) Checkout {
	GinkgoHelper()
	c, err := f.Prepare(context.Background(), req)
	Expect(err).NotTo(HaveOccurred())
	return c
}

func (f *fixture) item(s string) Checkout {
	GinkgoHelper()
	return f.prepare(Request{Item: ref(s)})
}

func (f *fixture) remove(s string, endpoints ...string) RemoveResult {
	GinkgoHelper()
	r := Removal{Item: ref(s), UndoDir: f.undo}
	for _, e := range endpoints {
		r.Endpoints = append(r.Endpoints, ref(e))
	}
	res, err := f.Remove(context.Background(), r)
	Expect(err).NotTo(HaveOccurred())
	return res
}

func (f *fixture) restore(u Undo) Checkout {
	GinkgoHelper()
	c, err := f.Restore(context.Background(), u)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// gitScript is a git that does something of its own for some commands: $GIT is the real
// one, $* the arguments.
func (f *fixture) gitScript(body string) string {
	GinkgoHelper()
	real, err := exec.LookPath("git")
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(f.dir, "git-script")
	Expect(os.WriteFile(path, []byte("#!/bin/sh\nGIT="+real+"\n"+body+"\nexec \"$GIT\" \"$@\"\n"), 0o755)).To(Succeed())
	return path
}

func haveReason(r Reason) OmegaMatcher { return WithTransform(ReasonOf, Equal(r)) }

func entries(dir string) []string {
	list, _ := os.ReadDir(dir)
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// both describes a subject once for each strategy.
func both(subject string, body func(s Strategy)) bool {
	for _, s := range []Strategy{Worktree, Clone} {
		Describe(subject+" ["+string(s)+"]", func() { body(s) })
	}
	return true
}
