package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

var _ = Describe("a refusal", func() {
	at := time.Date(2026, 11, 30, 15, 0, 36, 0, time.UTC)

	DescribeTable("counts until", func(r Refusal, want time.Time) {
		Expect(r.Ends()).To(Equal(want))
		Expect(r.Holds(want.Add(-time.Nanosecond))).To(BeTrue())
		Expect(r.Holds(want)).To(BeFalse(), "P48: whatever stays on the screen")
	},
		Entry("the time that it names", Refusal{Since: at, Until: at.Add(2 * time.Hour)}, at.Add(2*time.Hour)),
		Entry("the back-off, when it names none", Refusal{Since: at}, at.Add(15*time.Minute)),
		Entry("the back-off, when the time is past", Refusal{Since: at, Until: at.Add(-time.Minute)}, at.Add(15*time.Minute)),
		Entry("the back-off, when the time is beyond any limit", Refusal{Since: at, Until: at.AddDate(1, 0, 0)}, at.Add(15*time.Minute)),
	)

	It("is none without a time", func() {
		Expect(Refusal{Until: at.Add(time.Hour)}.Ends()).To(BeZero())
		Expect(Refusal{Until: at.Add(time.Hour)}.Holds(at)).To(BeFalse())
	})

	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	DescribeTable("names its end", func(text string, want string) {
		got := namedTime(text, at, berlin)
		if want == "" {
			Expect(got).To(BeZero())
			return
		}
		Expect(got.Format(time.RFC3339)).To(Equal(want))
	},
		// As Claude Code 2.1.332 says it, seen.
		Entry(nil, "You've hit your 5-hour limit · resets 5pm (UTC)", "2026-11-30T17:01:00Z"),
		Entry(nil, "You've hit your 5-hour limit · resets 5:01pm (UTC)", "2026-11-30T17:02:00Z"),
		Entry(nil, "You've hit your weekly limit · resets Dec 2, 10:34pm (UTC)", "2026-12-02T22:35:00Z"),
		Entry("within this minute", "resets 3pm (UTC)", "2026-11-30T15:01:00Z"),
		// By the program's own rules for other times.
		Entry("on the next day, within 24 hours", "resets 2am (UTC)", "2026-12-01T02:01:00Z"),
		Entry("at noon", "resets Dec 2, 12pm (UTC)", "2026-12-02T12:01:00Z"),
		Entry("in another zone", "resets 12:30am (America/New_York)", "2026-12-01T05:31:00Z"),
		Entry("without a zone", "limit resets 5:01pm", "2026-11-30T16:02:00Z"),
		Entry("in another year", "resets Jan 1, 2027, 1am (UTC)", "2027-01-01T01:01:00Z"),
		// As Codex 0.171.0 says it, seen.
		Entry(nil, "visit https://chatgpt.com/settings/usage to purchase more credits or try again at 5:04 PM.", "2026-11-30T16:05:00Z"),
		Entry(nil, "or try again at Dec 2nd, 2026 10:41 PM.", "2026-12-02T21:42:00Z"),
		Entry("nothing", "API Error: Request rejected (429)", ""),
		Entry("an unknown zone", "resets 5pm (Nowhere/Land)", ""),
		Entry("no such time", "resets 13pm (UTC)", ""),
		Entry("no such day", "resets Feb 31, 5pm (UTC)", ""),
	)

	Describe("as Claude Code tells it", func() {
		failed := func(word, message string) hook.Note {
			return hook.Note{Event: "StopFailure", Time: at, Error: word, Message: message}
		}
		observe := func(s State, notes ...hook.Note) State {
			for _, n := range notes {
				s = claude{}.Observe(s, n)
			}
			return s
		}
		busy := State{Ready: true, Activity: ActivityBusy, Since: at.Add(-time.Second)}

		DescribeTable("P47, H23: by the word of the failed turn", func(word, message string, limited, login Refusal) {
			s := observe(busy, failed(word, message))
			Expect(s.Limited).To(Equal(limited))
			Expect(s.LoginRefused).To(Equal(login))
			Expect(s.Activity).To(Equal(ActivityIdle))
		},
			Entry("the 5-hour limit", "rate_limit", "You've hit your 5-hour limit · resets 5pm (UTC)",
				Refusal{Since: at, Until: at.Truncate(time.Hour).Add(2*time.Hour + time.Minute), Why: "You've hit your 5-hour limit · resets 5pm (UTC)"}, Refusal{}),
			Entry("another 429", "rate_limit", "API Error: Request rejected (429)", Refusal{Since: at, Why: "API Error: Request rejected (429)"}, Refusal{}),
			Entry("no money", "billing_error", "Credit balance is too low", Refusal{Since: at, Why: "Credit balance is too low"}, Refusal{}),
			Entry("without a sentence", "rate_limit", "", Refusal{Since: at, Why: "rate_limit"}, Refusal{}),
			Entry("a login that has expired", "authentication_failed", "Please run /login · API Error: 401",
				Refusal{}, Refusal{Since: at, Why: "Please run /login · API Error: 401"}),
			Entry("an account on hold", "account_on_hold", "", Refusal{}, Refusal{Since: at, Why: "account_on_hold"}),
			Entry("an outage: nothing of the account's", "server_error", "API Error: 529 Overloaded", Refusal{}, Refusal{}),
			Entry("a bad request", "invalid_request", "API Error: 400", Refusal{}, Refusal{}),
			Entry("no word", "", "", Refusal{}, Refusal{}),
		)

		DescribeTable("is cleared", func(n hook.Note, limited, login bool) {
			n.Time = at.Add(time.Minute)
			s := busy.limited("a", at, at.Add(time.Hour)).loginRefused("b", at)
			s = observe(s, n)
			Expect(s.Limited.Since.IsZero()).To(Equal(limited), "the limit")
			Expect(s.LoginRefused.Since.IsZero()).To(Equal(login), "the login")
		},
			Entry("by a turn that was answered", hook.Note{Event: "Stop"}, true, true),
			Entry("by the harness that goes on by itself", hook.Note{Event: "Notification", Notification: "quota_auto_resume_fired"}, true, false),
			Entry("by a login", hook.Note{Event: "Notification", Notification: "auth_success"}, false, true),
			Entry("of the login, by a limit: who is counted is known", hook.Note{Event: "StopFailure", Error: "rate_limit"}, false, true),
			Entry("not by another failure", hook.Note{Event: "StopFailure", Error: "server_error"}, false, false),
			Entry("not by a prompt that is taken", hook.Note{Event: "UserPromptSubmit"}, false, false),
			Entry("not by idleness", hook.Note{Event: "Notification", Notification: "idle_prompt"}, false, false),
			Entry("not by another conversation", hook.Note{Event: "SessionStart", Source: "clear"}, false, false),
		)

		Describe("in a sentence that does not name its end", func() {
			var path string
			now := time.Now().Truncate(time.Second)
			BeforeEach(func() { path = filepath.Join(GinkgoT().TempDir(), "c.jsonl") })
			line := func(t time.Time, status string, resets time.Time) string {
				b, err := json.Marshal(map[string]any{
					"type": "assistant", "timestamp": t.UTC().Format(time.RFC3339Nano), "error": "rate_limit", "isApiErrorMessage": true,
					"quotaLimits": map[string]any{"status": status, "resetsAt": resets.Unix(), "rateLimitType": "five_hour"},
				})
				Expect(err).NotTo(HaveOccurred())
				return string(b) + "\n"
			}
			recheck := func(s State, text ...string) State {
				GinkgoHelper()
				Expect(os.WriteFile(path, []byte(strings.Join(text, "")), 0o600)).To(Succeed())
				s.TranscriptPath = path
				return claude{}.Recheck(s, Process{Lookup: func(string) string { return "" }})
			}
			limited := State{}.limited("You've hit a limit of a new kind", now, time.Time{})
			resets := now.Add(3 * time.Hour)

			It("is taken from the transcript", func() {
				s := recheck(limited, line(now.Add(-time.Hour), "rejected", now.Add(time.Hour)), line(now, "rejected", resets), `{"type":"system"}`+"\n")
				Expect(s.Limited.Ends().Equal(resets)).To(BeTrue())
			})

			DescribeTable("is not taken from", func(s State, text string) {
				Expect(recheck(s, text).Limited).To(Equal(s.Limited))
			},
				Entry("an earlier turn", limited, line(now.Add(-time.Minute), "rejected", resets)),
				Entry("a turn that was let pass", limited, line(now, "allowed", resets)),
				Entry("a line that is not whole", limited, strings.TrimSpace(line(now, "rejected", resets))),
				Entry("nothing", limited, ""),
				Entry("a transcript, when there is no limit", State{}, line(now, "rejected", resets)),
				Entry("a transcript, when the sentence names it", State{}.limited("x", now, now.Add(time.Hour)), line(now, "rejected", resets)),
			)
		})
	})

	Describe("as Codex tells it", func() {
		DescribeTable("P47, H23: by the end of its turn", func(failure, limited, login string) {
			path := filepath.Join(GinkgoT().TempDir(), "r.jsonl")
			line := `{"timestamp":"2026-11-30T15:00:36Z","type":"event_msg","payload":{"type":"task_complete","turn_id":"t","error":` + failure + `}}`
			Expect(os.WriteFile(path, []byte(line+"\n"), 0o600)).To(Succeed())
			s := State{Ready: true, ConversationID: "c", Activity: ActivityBusy, Since: at.Add(-time.Second), TranscriptPath: path}
			s = codex{}.Recheck(s, Process{Lookup: func(string) string { return "" }})
			Expect(s.Activity).To(Equal(ActivityIdle))
			Expect(s.Limited.Why).To(Equal(limited))
			Expect(s.LoginRefused.Why).To(Equal(login))
			if limited != "" {
				Expect(s.Limited.Since.Equal(at)).To(BeTrue())
				Expect(s.Limited.Until).To(Equal(namedTime(limited, at, time.Local)))
			}
			s = codex{}.Observe(s, hook.Note{Event: "Stop", Time: at.Add(time.Hour)})
			Expect(s.Limited).To(BeZero())
			Expect(s.LoginRefused).To(BeZero())
		},
			Entry("a limit", `{"message":"You’ve hit your usage limit. Try again at 5:04 PM.","codex_error_info":"usage_limit_exceeded"}`,
				"You’ve hit your usage limit. Try again at 5:04 PM.", ""),
			Entry("a login", `{"message":"unexpected status 401 Unauthorized","codex_error_info":{"http_connection_failed":{"http_status_code":401}}}`,
				"", "unexpected status 401 Unauthorized"),
			Entry("another status", `{"message":"x","codex_error_info":{"http_connection_failed":{"http_status_code":500}}}`, "", ""),
			Entry("another failure", `{"message":"x","codex_error_info":"other"}`, "", ""),
			Entry("a failure without more", `{"message":"x"}`, "", ""),
			Entry("one of another form", `{"message":"x","codex_error_info":[1]}`, "", ""),
			Entry("none", `null`, "", ""),
		)
	})
})
