package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("claude's session file", func() {
	var home, config string
	BeforeEach(func() {
		home = GinkgoT().TempDir()
		config = filepath.Join(home, ".claude")
		Expect(os.MkdirAll(filepath.Join(config, "sessions"), 0o700)).To(Succeed())
	})
	// write puts a file for the process there, changed by the pairs.
	write := func(pid int, pairs ...any) {
		GinkgoHelper()
		fields := map[string]any{
			"pid": pid, "sessionId": "c1", "cwd": "/w", "startedAt": 1, "version": "2.1.332", "kind": "interactive",
			"status": "idle", "statusUpdatedAt": at(10).UnixMilli(),
		}
		for i := 0; i < len(pairs); i += 2 {
			fields[pairs[i].(string)] = pairs[i+1]
		}
		data, err := json.Marshal(fields)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(config, "sessions", strconv.Itoa(pid)+".json"), data, 0o600)).To(Succeed())
	}
	self := os.Getpid()
	lookup := func(pairs ...string) func(string) string {
		return func(key string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == key {
					return pairs[i+1]
				}
			}
			return ""
		}
	}

	It("is found by conversation", func() {
		write(self, "status", "waiting", "waitingFor", "permission prompt")
		s, ok := ClaudeSessionFile(config, "c1")
		Expect(ok).To(BeTrue())
		Expect(s).To(Equal(ClaudeSession{PID: self, ConversationID: "c1", Status: "waiting", WaitingFor: "permission prompt", Updated: at(10).Local()}))
		_, ok = ClaudeSessionFile(config, "c2")
		Expect(ok).To(BeFalse())
		_, ok = ClaudeSessionFile(config, "")
		Expect(ok).To(BeFalse())
	})

	It("may be absent, corrupt, huge or no file", func() {
		_, ok := ClaudeSessionFile(filepath.Join(home, "missing"), "c1")
		Expect(ok).To(BeFalse())
		dir := filepath.Join(config, "sessions")
		Expect(os.WriteFile(filepath.Join(dir, "1.json"), []byte("{"), 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "2.json"), []byte(strings.Repeat(" ", maxSessionFile+1)), 0o600)).To(Succeed())
		Expect(os.Mkdir(filepath.Join(dir, "3.json"), 0o700)).To(Succeed())
		Expect(os.Symlink("/etc/passwd", filepath.Join(dir, "4.json"))).To(Succeed())
		_, ok = ClaudeSessionFile(config, "c1")
		Expect(ok).To(BeFalse())
		write(self)
		_, ok = ClaudeSessionFile(config, "c1")
		Expect(ok).To(BeTrue())
	})

	It("does not count when it was left behind", func() {
		gone := exec.Command("true")
		Expect(gone.Run()).To(Succeed())
		write(gone.ProcessState.Pid())
		_, ok := ClaudeSessionFile(config, "c1")
		Expect(ok).To(BeFalse())
	})

	It("does not count for another process that got the pid", func() {
		write(self, "procStart", "1")
		_, ok := ClaudeSessionFile(config, "c1")
		Expect(ok).To(BeFalse())
	})

	It("counts when the start of its process is the same or cannot be compared", func() {
		data, err := os.ReadFile("/proc/self/stat")
		Expect(err).NotTo(HaveOccurred())
		start := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))[19]
		for _, v := range []any{start, json.RawMessage(start), "Fri Jan 2 12:00:00 2026", json.RawMessage("1767355200000"), nil} {
			write(self, "procStart", v)
			_, ok := ClaudeSessionFile(config, "c1")
			Expect(ok).To(BeTrue(), fmt.Sprint(v))
		}
	})

	It("is the most recently updated of several", func() {
		write(self, "status", "idle")
		write(os.Getppid(), "status", "busy", "statusUpdatedAt", at(11).UnixMilli())
		s, ok := ClaudeSessionFile(config, "c1")
		Expect(ok).To(BeTrue())
		Expect(s.Status).To(Equal("busy"))
	})

	It("is as new as the file when it does not say", func() {
		write(self, "statusUpdatedAt", nil)
		s, _ := ClaudeSessionFile(config, "c1")
		Expect(s.Updated).To(BeTemporally("~", time.Now(), time.Minute))
	})

	It("is found in a directory with a pattern's characters", func() {
		odd := filepath.Join(home, "a[b]*?")
		Expect(os.Rename(config, odd)).To(Succeed())
		config = odd
		write(self)
		_, ok := ClaudeSessionFile(config, "c1")
		Expect(ok).To(BeTrue())
	})

	DescribeTable("corrects the activity",
		func(file, waitingFor string, fileAt int, before, want Activity, wantSince int) {
			write(self, "status", file, "waitingFor", waitingFor, "statusUpdatedAt", at(fileAt).UnixMilli())
			s := State{Ready: true, ConversationID: "c1", Activity: before, Since: at(5)}
			if before == ActivityAwaitingInput {
				s.WaitingFor = "permission for Bash"
			}
			got := claude{}.Recheck(s, Process{Lookup: lookup("HOME", home)})
			Expect(got.Activity).To(Equal(want))
			Expect(got.Since.Equal(at(wantSince))).To(BeTrue())
			if want == ActivityAwaitingInput {
				Expect(got.WaitingFor).NotTo(BeEmpty())
			} else {
				Expect(got.WaitingFor).To(BeEmpty())
			}
		},
		Entry("an interrupted turn", "idle", "", 6, ActivityBusy, ActivityIdle, 6),
		Entry("a cancelled dialog", "idle", "", 6, ActivityAwaitingInput, ActivityIdle, 6),
		Entry("an answered dialog", "busy", "", 6, ActivityAwaitingInput, ActivityBusy, 6),
		Entry("a dialog that no hook told of", "waiting", "permission prompt", 6, ActivityBusy, ActivityAwaitingInput, 6),
		Entry("a dialog in the same moment", "waiting", "", 5, ActivityIdle, ActivityAwaitingInput, 5),
		Entry("an older idle", "idle", "", 4, ActivityBusy, ActivityBusy, 5),
		Entry("an idle of the same moment", "idle", "", 5, ActivityBusy, ActivityBusy, 5),
		Entry("an older dialog", "waiting", "", 4, ActivityBusy, ActivityBusy, 5),
		Entry("the dialog we know", "waiting", "permission prompt", 6, ActivityAwaitingInput, ActivityAwaitingInput, 5),
		Entry("an unknown status", "dreaming", "", 6, ActivityBusy, ActivityBusy, 5),
	)

	It("is looked for where the harness has its configuration, of the same session only", func() {
		write(self)
		busy := State{ConversationID: "c1", Activity: ActivityBusy, Since: at(1)}
		idle := func(l func(string) string) bool {
			return claude{}.Recheck(busy, Process{Lookup: l}).Activity == ActivityIdle
		}
		Expect(idle(lookup("CLAUDE_CONFIG_DIR", config))).To(BeTrue())
		Expect(idle(lookup("CLAUDE_CONFIG_DIR", " "+config+" ", "HOME", "/nowhere"))).To(BeTrue())
		Expect(idle(lookup())).To(BeFalse(), "without a home")
		Expect(idle(lookup("HOME", home, "LOOP_UID", "u-other"))).To(BeFalse(), "a person's own claude on the same conversation")

		child := exec.Command("sleep", "60")
		child.Env = append(os.Environ(), "LOOP_UID=u-1")
		Expect(child.Start()).To(Succeed())
		DeferCleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
		write(child.Process.Pid)
		Eventually(func() bool { return idle(lookup("HOME", home, "LOOP_UID", "u-1")) }).Should(BeTrue())
		Expect(idle(lookup("HOME", home, "LOOP_UID", "u"))).To(BeFalse())

		busy.Ended = true
		Expect(idle(lookup("HOME", home))).To(BeFalse())
	})

	It("is what the interface offers", func() {
		a, err := Get("claude")
		Expect(err).NotTo(HaveOccurred())
		_, ok := a.(StateFile)
		Expect(ok).To(BeTrue())
	})
})

func FuzzParseClaudeSession(f *testing.F) {
	f.Add([]byte(`{"pid":7,"sessionId":"c","status":"idle","statusUpdatedAt":1767355200000,"procStart":"5"}`))
	f.Add([]byte(`{"pid":7,"sessionId":"c","status":1,"statusUpdatedAt":"2026-01-02T12:00:00Z","procStart":5}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseClaudeSession(data)
		if err == nil && (s.PID <= 1 || s.ConversationID == "") {
			t.Fatalf("incomplete: %+v", s)
		}
	})
}
