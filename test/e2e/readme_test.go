package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/theloop-dev/the-loop/test/testenv"
)

var codeBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")

var _ = Describe("README.md", func() {
	It("does what it says: the first command, every step by hand, and the end", func() {
		readme, err := os.ReadFile(filepath.Join(env.Root, "README.md"))
		Expect(err).NotTo(HaveOccurred())
		for _, first := range []string{"    make run\n", "    make test\n", "    make down\n"} {
			Expect(string(readme)).To(ContainSubstring(first))
		}
		u := newUpState()
		args := "ARGS=--state-dir " + u.dir + " --tmux-socket " + u.socket
		make := exec.Command("make", "--no-print-directory", "run", args)
		make.Dir, make.Env = env.Root, append(os.Environ(), u.makeEnvironment()...)
		p := testenv.Run(make)
		Eventually(p.Session, 5*time.Minute).Should(gbytes.Say(`Ready\. Ctrl-C stops the-loop`))

		blocks := codeBlock.FindAllStringSubmatch(string(readme), -1)
		Expect(len(blocks)).To(BeNumerically(">", 5))
		for _, b := range blocks {
			u.runBlock(b[1])
		}

		down := exec.Command("make", "--no-print-directory", "down", "ARGS=--state-dir "+u.dir)
		down.Dir, down.Env = env.Root, append(os.Environ(), u.makeEnvironment()...)
		out, err := down.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		Expect(string(out)).To(ContainSubstring("ended session loop-standing-hello"))
		Eventually(p.Session, 20*time.Second).Should(gexec.Exit(0))
		By("leaving nothing, the retained terminal of the deleted session included")
		Expect(string(out)).To(And(ContainSubstring("ended session loop-standing-supervisor"), ContainSubstring("ended the terminal server")))
	})
})

// indentedBlock is the block of README.md, without its indentation, that begins with this
// line.
func indentedBlock(readme, first string) string {
	GinkgoHelper()
	_, after, found := strings.Cut(readme, "\n    "+first+"\n")
	Expect(found).To(BeTrue(), "README.md has no block that begins with %q", first)
	block := first + "\n"
	for line := range strings.Lines(after) {
		rest, indented := strings.CutPrefix(line, "    ")
		if !indented {
			break
		}
		block += rest
	}
	return block
}

var _ = Describe("README.md, beside the first steps", func() {
	It("C160: declares sessions as its example says, and shows a work item that is accepted", func() {
		text, err := os.ReadFile(filepath.Join(env.Root, "README.md"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(ContainSubstring("    make run ARGS=\"--config $PWD/cli-config.yaml\"\n"))
		u := newUpState()
		file := filepath.Join(u.dir, "cli-config.yaml")
		Expect(os.WriteFile(file, []byte(indentedBlock(string(text), "standingSessions:")), 0o600)).To(Succeed())
		item := filepath.Join(u.dir, "item.yaml")
		Expect(os.WriteFile(item, []byte(indentedBlock(string(text), "apiVersion: theloop.dev/v1alpha1")), 0o600)).To(Succeed())
		isReady(u.up("--config", file))
		u.becomes("watcher", "Running")
		u.becomes("scratch", "Stopped")
		Expect(u.kubectl("create", "--dry-run=server", "-f", item)).To(ContainSubstring("github-octo-repo-15 created"))
		u.kubectl("patch", "standing", "scratch", "--type=merge", "-p", `{"spec":{"state":"Running"}}`)
		u.becomes("scratch", "Running")
	})
})

// makeEnvironment is that of the person who runs make, with the caches of this one.
func (u *upState) makeEnvironment() []string {
	env := []string{"THE_LOOP_CACHE=" + filepath.Dir(filepath.Dir(env.Assets))}
	for _, v := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		out, err := exec.Command("go", "env", v).Output()
		Expect(err).NotTo(HaveOccurred())
		env = append(env, v+"="+strings.TrimSpace(string(out)))
	}
	return append(env, u.environment()...)
}

// runBlock runs one block of commands in a terminal. Where it attaches, what is shown
// is awaited and left as a person leaves it.
func (u *upState) runBlock(block string) {
	GinkgoHelper()
	By(strings.SplitN(block, "\n", 2)[0])
	cmd := exec.Command("bash", "-eu", "-c", block)
	cmd.Dir = u.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(u.dir, "control-plane", "kubeconfig"), "TERM=xterm-256color",
		"PATH="+os.Getenv("PATH")+":"+env.Assets)
	t, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 160})
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = t.Close() }()
	seen := &transcript{}
	copied := make(chan struct{})
	go func() { defer close(copied); _, _ = io.Copy(io.MultiWriter(seen, GinkgoWriter), t) }()
	if strings.Contains(block, "attachCommand") {
		Eventually(seen.String).Should(ContainSubstring("Keep to these rules"), "the attached terminal shows the session")
		_, err := t.WriteString("\x02d")
		Expect(err).NotTo(HaveOccurred())
	}
	err = cmd.Wait()
	<-copied
	Expect(err).NotTo(HaveOccurred(), seen.String())
}

// transcript is what a terminal showed.
type transcript struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write implements io.Writer.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

// String implements fmt.Stringer.
func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}
