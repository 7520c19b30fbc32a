package main_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

const submitted = `{"hook_event_name":"UserPromptSubmit","session_id":"c1","prompt":"hello"}`

var _ = Describe("loop-shim hook", func() {
	var dir, journal, socket string
	BeforeEach(func() {
		var err error
		dir, err = os.MkdirTemp("", "shim")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		journal, socket = filepath.Join(dir, "journal"), filepath.Join(dir, "s")
	})
	args := func(more ...string) []string {
		return append([]string{"hook", "--journal", journal, "--socket", socket, "--poke", "uid/3"}, more...)
	}
	// call runs the hook and returns its output. It must succeed, whatever happens.
	call := func(stdin io.Reader, args ...string) string {
		GinkgoHelper()
		cmd := exec.Command(shim, args...)
		var out bytes.Buffer
		cmd.Stdin, cmd.Stdout = stdin, &out
		Expect(cmd.Run()).To(Succeed())
		return out.String()
	}
	notes := func() []hook.Note {
		GinkgoHelper()
		notes, _, err := hook.Read(journal, 0)
		Expect(err).NotTo(HaveOccurred())
		return notes
	}
	problems := func() string {
		data, _ := os.ReadFile(journal + ".err")
		return string(data)
	}

	It("notes the event, tells the agent, and says nothing", func() {
		ctx, cancel := context.WithCancel(context.Background())
		pokes, err := hook.Listen(ctx, socket)
		Expect(err).NotTo(HaveOccurred())
		before := time.Now()
		Expect(call(strings.NewReader(submitted), args()...)).To(BeEmpty())
		Expect(notes()).To(HaveLen(1))
		n := notes()[0]
		Expect(n.Time).To(And(BeTemporally(">=", before), BeTemporally("<=", time.Now())))
		n.Time = time.Time{}
		Expect(n).To(Equal(hook.Note{Event: "UserPromptSubmit", ConversationID: "c1", PromptDigest: hook.Digest("hello"), PromptBytes: 5}))
		Eventually(pokes).Should(Receive(Equal("uid/3")))
		Expect(problems()).To(BeEmpty())
		cancel()
		Eventually(pokes).Should(BeClosed())
	})

	It("never writes the prompt down", func() {
		call(strings.NewReader(`{"hook_event_name":"UserPromptSubmit","prompt":"hunter2"}`), args()...)
		Expect(os.ReadFile(journal)).NotTo(ContainSubstring("hunter2"))
	})

	It("does its work when the agent is away", func() {
		Expect(call(strings.NewReader(submitted), args()...)).To(BeEmpty())
		Expect(notes()).To(HaveLen(1))
		Expect(problems()).To(BeEmpty(), "an agent that is away is no problem")
	})

	It("does its work when the agent is stopped", func() {
		agent := exec.Command(self(), socket)
		agent.Env = append(os.Environ(), asHelper+"=listener")
		out := gbytes.NewBuffer()
		agent.Stdout = out
		Expect(agent.Start()).To(Succeed())
		DeferCleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
		Eventually(out).Should(gbytes.Say("ready"))
		Expect(agent.Process.Signal(syscall.SIGSTOP)).To(Succeed())
		Eventually(func() string { return stat(agent.Process.Pid, 3) }).Should(Equal("T"))

		const times = 40 // more than the queue of the socket holds
		begun := time.Now()
		for range times {
			Expect(call(strings.NewReader(submitted), args()...)).To(BeEmpty())
		}
		Expect(time.Since(begun)).To(BeNumerically("<", times*500*time.Millisecond))
		Expect(notes()).To(HaveLen(times))
	})

	DescribeTable("survives what is no event, and says so beside the journal",
		func(input, says string) {
			Expect(call(strings.NewReader(input), args()...)).To(BeEmpty())
			Expect(journal).NotTo(BeAnExistingFile())
			Expect(problems()).To(ContainSubstring(says))
			Expect(strings.Count(problems(), "\n")).To(Equal(1))
		},
		Entry("nothing", "", "not a JSON object"),
		Entry("garbage", "\x00\xff\n\n{", "not a JSON object"),
		Entry("another object", `{"a":1}`, "no hook_event_name"),
		Entry("too much", `{"hook_event_name":"Stop","x":"`+strings.Repeat("x", 6<<20)+`"}`, "larger than 4 MiB"),
	)

	It("does not wait for ever for the end of its input", func() {
		r, w, err := os.Pipe()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Close)
		_, err = w.WriteString(submitted)
		Expect(err).NotTo(HaveOccurred())
		Expect(call(r, args()...)).To(BeEmpty())
		Expect(r.Close()).To(Succeed())
		Expect(notes()).To(HaveLen(1), "what came was whole")
	})

	It("survives a journal that cannot be written", func() {
		Expect(os.Mkdir(journal, 0o700)).To(Succeed())
		Expect(call(strings.NewReader(submitted), args()...)).To(BeEmpty())
		Expect(problems()).To(ContainSubstring("is a directory"))
		journal = filepath.Join(dir, "gone", "journal")
		Expect(call(strings.NewReader(submitted), args()...)).To(BeEmpty())
	})

	It("bounds what it says beside the journal", func() {
		Expect(os.WriteFile(journal+".err", bytes.Repeat([]byte("x\n"), 40<<10), 0o600)).To(Succeed())
		call(strings.NewReader("garbage"), args()...)
		Expect(problems()).NotTo(ContainSubstring("JSON"))
	})

	DescribeTable("survives its command line",
		func(noted int, flags ...string) {
			for i := range flags {
				flags[i] = strings.ReplaceAll(flags[i], "JOURNAL", journal)
			}
			Expect(call(strings.NewReader(submitted), append([]string{"hook"}, flags...)...)).To(BeEmpty())
			Expect(notes()).To(HaveLen(noted))
		},
		Entry("none", 0),
		Entry("no socket", 1, "--journal", "JOURNAL"),
		Entry("a socket path that is too long", 1, "--journal", "JOURNAL", "--socket", "/"+strings.Repeat("s", 200)),
		Entry("an unknown flag behind the journal", 1, "--journal", "JOURNAL", "--dance"),
		Entry("a flag without its value", 1, "--journal", "JOURNAL", "--poke"),
		Entry("help", 0, "--help"),
	)

	It("survives that nobody reads what it says", func() {
		r, w, err := os.Pipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Close()).To(Succeed())
		cmd := exec.Command(shim, args("--permissions", "Deny")...)
		cmd.Stdin, cmd.Stdout = strings.NewReader(`{"hook_event_name":"PermissionRequest","tool_name":"Bash"}`), w
		Expect(cmd.Run()).To(Succeed())
		Expect(w.Close()).To(Succeed())
		Expect(notes()).To(HaveLen(1))
		Expect(problems()).To(ContainSubstring("broken pipe"))
	})

	It("finishes its note when the harness is being ended", func() {
		r, w, err := os.Pipe()
		Expect(err).NotTo(HaveOccurred())
		cmd := exec.Command(shim, args()...)
		cmd.Stdin = r
		Expect(cmd.Start()).To(Succeed())
		_ = r.Close()
		Eventually(func() string { // it ignores SIGTERM by now
			data, _ := os.ReadFile("/proc/" + itoa(cmd.Process.Pid) + "/status")
			_, ignored, _ := strings.Cut(string(data), "SigIgn:\t")
			return ignored
		}).Should(MatchRegexp(`^[0-9a-f]*[4-7c-f][0-9a-f]{3}\n`))
		for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
			Expect(cmd.Process.Signal(s)).To(Succeed())
		}
		_, err = w.WriteString(`{"hook_event_name":"SessionEnd","reason":"other"}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(w.Close()).To(Succeed())
		Expect(cmd.Wait()).To(Succeed())
		Expect(notes()).To(HaveLen(1))
	})

	const (
		deny  = `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"no person is at this terminal: the session's permissions are Deny"}}}`
		allow = `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`
	)
	DescribeTable("answers permission dialogs as it is told",
		func(permissions, input, says, answered string) {
			out := call(strings.NewReader(input), args("--permissions", permissions)...)
			if says == "" {
				Expect(out).To(BeEmpty())
			} else {
				Expect(out).To(MatchJSON(says))
			}
			Expect(notes()).To(HaveLen(1))
			Expect(notes()[0].Answered).To(Equal(answered))
		},
		Entry("leaves them to a person", "Ask", request("Bash"), "", ""),
		Entry("denies", "Deny", request("Bash"), deny, "Deny"),
		Entry("allows", "Allow", request("Bash"), allow, "Allow"),
		Entry("denies a question", "Deny", request("AskUserQuestion"), deny, "Deny"),
		Entry("cannot allow a question: it wants an answer", "Allow", request("AskUserQuestion"), "", ""),
		Entry("answers nothing else", "Deny", submitted, "", ""),
		Entry("takes an unknown word for Ask", "Maybe", request("Bash"), "", ""),
	)

	It("decides even when it cannot note", func() {
		journal = filepath.Join(dir, "gone", "journal")
		out := call(strings.NewReader(request("Bash")), args("--permissions", "Deny")...)
		Expect(out).To(MatchJSON(deny))
	})
})

// request is the input of a hook for a permission dialog.
func request(tool string) string {
	return `{"hook_event_name":"PermissionRequest","tool_name":"` + tool + `","tool_input":{"command":"x"}}`
}
