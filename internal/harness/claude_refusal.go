package harness

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

// claudeFailed folds a turn that failed, by the word in StopFailure's error. Measured with
// Claude Code 2.1.332 against answers of the API in the vendor's form:
//
//   - rate_limit: HTTP 429. At a subscription's usage limit (a token of its login, the
//     headers anthropic-ratelimit-unified-*, x-should-retry: false) there is no retry, and
//     last_assistant_message is "You've hit your 5-hour limit · resets 5pm (UTC)", at the
//     weekly limit "You've hit your weekly limit · resets Dec 2, 10:34pm (UTC)". With an API
//     key the same answer is "API Error: Request rejected (429) · …", without a time; without
//     x-should-retry it is tried up to ten times before, while claude is busy.
//   - billing_error: HTTP 400, "Credit balance is too low".
//   - authentication_failed: HTTP 401, "Please run /login · API Error: 401 …" with a
//     subscription's token, "Not logged in · Please run /login" with another; tried up to ten
//     times before too, unless the answer says x-should-retry: false.
//   - server_error: HTTP 529, after ten tries and some 85 s. It is nothing of the account's.
//
// Each time UserPromptSubmit had run and the prompt stands in the transcript: claude took
// it, the input box is empty, and what was not answered goes to the model together with the
// next prompt. A text that is typed at the limit is taken too, and fails in the same way.
//
// At the 5-hour limit claude goes on with the turn by itself (seen 78 s after the reset),
// with a notification and a prompt of its own; a prompt that is typed before takes the
// place of that. At the weekly limit it opens a menu instead, "What do you want to do?", of
// which its session file tells and no hook.
//
// The other words are what the program declares, and were not seen.
func claudeFailed(s State, n hook.Note) State {
	why := cmp.Or(n.Message, n.Error)
	switch n.Error {
	case "rate_limit", "billing_error":
		return s.limited(why, n.Time, namedTime(n.Message, n.Time, time.Local))
	case "authentication_failed", "oauth_org_not_allowed", "account_on_hold", "verification_required", "cloud_credential_error":
		return s.loginRefused(why, n.Time)
	}
	return s
}

// claudeTail is how much of the end of a transcript is looked at, in bytes.
const claudeTail = 64 << 10

// claudeLimit finds in the transcript when a limit ends whose sentence did not say it in a
// form that is known: the line of the failed turn has it to the second. It is on disk some
// 0.5 s after the hook.
func claudeLimit(s State) State {
	l := s.Limited
	if l.Since.IsZero() || !l.Until.IsZero() || !l.Holds(time.Now()) {
		return s
	}
	for _, line := range newestLines(s.TranscriptPath, claudeTail) {
		var r struct {
			Timestamp   time.Time
			QuotaLimits struct {
				Status   string
				ResetsAt int64
			}
		}
		if json.Unmarshal(line, &r) != nil || r.QuotaLimits.Status != "rejected" || r.QuotaLimits.ResetsAt <= 0 {
			continue
		}
		if r.Timestamp.After(l.Since.Add(-claudeLimitSkew)) {
			s.Limited.Until = time.Unix(r.QuotaLimits.ResetsAt, 0).UTC()
		}
		return s
	}
	return s
}

// claudeLimitSkew is how long before its hook the line of a failed turn may be dated.
const claudeLimitSkew = 10 * time.Second
