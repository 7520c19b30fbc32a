package main_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

func TestFakeharness(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(5 * time.Millisecond)
	SetDefaultConsistentlyDuration(200 * time.Millisecond)
	RunSpecs(t, "fakeharness")
}

// program is the fakeharness.
var program string

var _ = SynchronizedBeforeSuite(func() []byte {
	path, err := gexec.BuildWithEnvironment("github.com/theloop-dev/the-loop/test/fakeharness", []string{"CGO_ENABLED=0"})
	Expect(err).NotTo(HaveOccurred())
	return []byte(path)
}, func(path []byte) { program = string(path) })

var _ = SynchronizedAfterSuite(func() {}, gexec.CleanupBuildArtifacts)

var _ = BeforeEach(func() {
	leaks := ground.Leaks()
	DeferCleanup(func() { Eventually(leaks).Should(Succeed()) })
})

const id1 = "0b8e4a52-8f5e-4c47-9d1f-2a1f3c4d5e6f"

// world is one home of fakeharnesses.
type world struct {
	home, dir, hooks string
	log              faketest.Log
}

// newWorld is an empty home, a working directory, and a file for what hooks get.
func newWorld() *world {
	GinkgoHelper()
	root, err := os.MkdirTemp("", "fake")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { // a hook may still write
		Eventually(os.RemoveAll).WithArguments(root).Should(Succeed())
	})
	w := &world{home: filepath.Join(root, "home"), dir: filepath.Join(root, "dir"), hooks: filepath.Join(root, "hooks"), log: faketest.Log(filepath.Join(root, "log"))}
	Expect(os.Mkdir(w.dir, 0o700)).To(Succeed())
	return w
}

// command is a fakeharness in this world.
func (w *world) command(behaviour string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "FAKEHARNESS_HOME="+w.home, "FAKEHARNESS_LOG="+string(w.log),
		"FAKEHARNESS_BEHAVIOUR="+behaviour, "LOOP_UID=uid-1", "HOOKS="+w.hooks)
	return cmd
}

// run starts a fakeharness on a terminal.
func (w *world) run(behaviour string, args ...string) *agent {
	GinkgoHelper()
	t, err := faketest.Start(w.command(behaviour, args...), 80, 24)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(t.Close)
	return &agent{Terminal: t, world: w}
}

// ready starts a fakeharness and waits until it is at its prompt.
func (w *world) ready(behaviour string, args ...string) *agent {
	GinkgoHelper()
	before := w.log.Count("ready")
	a := w.run(behaviour, args...)
	a.logs("ready", before+1)
	a.seen = len(w.log.All())
	return a
}

// fails runs a fakeharness that ends at once with status 1 and returns its output.
func (w *world) fails(behaviour string, args ...string) string {
	GinkgoHelper()
	a := w.run(behaviour, args...)
	Expect(a.code()).To(Equal(1))
	return a.Output()
}

// agent is a running fakeharness.
type agent struct {
	*faketest.Terminal
	world *world
	seen  int
}

// logs waits for the nth event of this name.
func (a *agent) logs(event string, n int) faketest.Event {
	GinkgoHelper()
	Eventually(a.world.log.Count).WithArguments(event).Should(BeNumerically(">=", n), a.Output)
	return a.world.log.Events(event)[n-1]
}

// code waits for the end and returns the exit code, -1 for a signal.
func (a *agent) code() int {
	GinkgoHelper()
	Eventually(a.Done).Should(BeClosed(), a.Output)
	return a.Cmd.ProcessState.ExitCode()
}

// types writes to the terminal.
func (a *agent) types(text string) {
	GinkgoHelper()
	Expect(a.Type(text)).To(Succeed())
}

// shows waits for a text on the screen.
func (a *agent) shows(text string) {
	GinkgoHelper()
	Eventually(a.Screen).Should(ContainSubstring(text))
}

// says submits a prompt and waits for the answer.
func (a *agent) says(text string) faketest.Event {
	GinkgoHelper()
	n := a.world.log.Count("reply")
	Expect(a.Paste(text)).To(Succeed())
	a.types("\r")
	return a.logs("reply", n+1)
}

// conversation is the stored file of a conversation, nil when there is none.
func (w *world) conversation(id string) []map[string]any {
	GinkgoHelper()
	paths, err := filepath.Glob(filepath.Join(w.home, "projects", "*", id+".jsonl"))
	Expect(err).NotTo(HaveOccurred())
	if len(paths) == 0 {
		return nil
	}
	Expect(paths).To(HaveLen(1))
	return readLines(paths[0])
}

// types of the lines of a conversation.
func kinds(lines []map[string]any) []string {
	out := []string{}
	for _, l := range lines {
		out = append(out, l["type"].(string))
	}
	return out
}

func readLines(path string) []map[string]any {
	GinkgoHelper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = f.Close() }()
	var out []map[string]any
	dec := json.NewDecoder(f)
	for dec.More() {
		var l map[string]any
		if dec.Decode(&l) != nil {
			break // the line is being written
		}
		out = append(out, l)
	}
	return out
}

// settings make every hook append what it gets to the file $HOOKS, and then run
// the script with the event as $E.
func settings(script string) string {
	GinkgoHelper()
	hooks := map[string]any{}
	for _, e := range []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "Notification", "Stop", "StopFailure", "SessionEnd"} {
		hooks[e] = []any{map[string]any{"hooks": []any{map[string]any{
			"type": "command", "timeout": 10, "command": "E=" + e + `; j=$(cat; echo); printf '%s\n' "$j" >>"$HOOKS"; ` + script,
		}}}}
	}
	data, err := json.Marshal(map[string]any{"hooks": hooks})
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

// hooked are the events that hooks got, in order.
func (w *world) hooked() []string {
	GinkgoHelper()
	var out []string
	for _, l := range readLines(w.hooks) {
		out = append(out, l["hook_event_name"].(string))
	}
	return out
}

// session is the program's own session file.
func (a *agent) session() map[string]any {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join(a.world.home, "sessions", strconv.Itoa(a.Cmd.Process.Pid)+".json"))
	if err != nil {
		return nil
	}
	var out map[string]any
	Expect(json.Unmarshal(data, &out)).To(Succeed())
	return out
}

func (a *agent) status() string {
	s, _ := a.session()["status"].(string)
	return s
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
