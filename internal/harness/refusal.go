package harness

import (
	"cmp"
	"regexp"
	"strings"
	"time"
)

// Refusal is a reason for which the vendor refuses every turn of a session, whatever is
// asked: the account's usage limit, or its login. The harness takes a prompt all the
// same, and its turn fails. The zero Refusal is none.
type Refusal struct {
	// Since is when the harness reported it.
	Since time.Time
	// Until is when it ends, as the harness said; zero when it did not say.
	Until time.Time
	// Why is the harness's own sentence.
	Why string
}

// RefusalBackOff is for how long a refusal counts that names no end. Then one text is
// tried: nothing tells that a limit was raised or that a login was renewed elsewhere.
const RefusalBackOff = 15 * time.Minute

// maxRefusal is the longest time until the end of a refusal that is believed: limits
// are for hours, a week or a month.
const maxRefusal = 32 * 24 * time.Hour

// Ends is when the refusal counts no longer, zero for none. What stays on the screen of
// the harness has no say in it.
func (r Refusal) Ends() time.Time {
	switch {
	case r.Since.IsZero():
		return time.Time{}
	case r.Until.After(r.Since) && r.Until.Sub(r.Since) <= maxRefusal:
		return r.Until
	}
	return r.Since.Add(RefusalBackOff)
}

// Holds reports that a turn would be refused now, as far as is known.
func (r Refusal) Holds(now time.Time) bool { return now.Before(r.Ends()) }

// limited notes a usage limit. A vendor who speaks of a limit has accepted the login.
func (s State) limited(why string, at, until time.Time) State {
	s.Limited, s.LoginRefused = Refusal{Since: at, Until: until, Why: why}, Refusal{}
	return s
}

// loginRefused notes a login that the vendor did not accept.
func (s State) loginRefused(why string, at time.Time) State {
	s.LoginRefused = Refusal{Since: at, Why: why}
	return s
}

// accepted notes a turn that the vendor answered.
func (s State) accepted() State {
	s.Limited, s.LoginRefused = Refusal{}, Refusal{}
	return s
}

// namedTimes is how harnesses name the end of a limit: "resets 5pm (UTC)", "resets
// Dec 2, 10:34pm (Europe/Berlin)", "try again at Dec 2nd, 2026 10:41 PM". Within 24 hours
// there is no date.
var namedTimes = regexp.MustCompile(`(?i)\b(?:resets|try again at) ` +
	`(?:([a-z]{3}) (\d{1,2})(?:st|nd|rd|th)?,?(?: (\d{4}),?)?(?: at)? )?` +
	`(\d{1,2})(?::(\d{2}))? ?([ap]m)\b(?: \(([^)]*)\))?`)

// namedTime is the time that a text of the harness names, zero without one. It is named
// to the minute, cut, so the end of that minute counts. at is when the text was shown, and
// local the zone of a time without one.
func namedTime(text string, at time.Time, local *time.Location) time.Time {
	m := namedTimes.FindStringSubmatch(text)
	if m == nil {
		return time.Time{}
	}
	month, day, year, hour, minute, half, zone := m[1], m[2], m[3], m[4], m[5], m[6], m[7]
	if zone != "" {
		named, err := time.LoadLocation(zone)
		if err != nil {
			return time.Time{}
		}
		local = named
	}
	at = at.In(local)
	if month == "" {
		month, day = at.Format("Jan"), at.Format("2")
	}
	words := []string{month, day, cmp.Or(year, at.Format("2006")), hour + ":" + cmp.Or(minute, "00") + strings.ToUpper(half)}
	t, err := time.ParseInLocation("Jan 2 2006 3:04PM", strings.Join(words, " "), local)
	if err != nil {
		return time.Time{}
	}
	t = t.Add(time.Minute)
	if m[1] != "" && year == "" && t.Before(at.AddDate(0, -6, 0)) {
		t = t.AddDate(1, 0, 0) // over New Year
	}
	if m[1] == "" && !t.After(at) {
		t = t.AddDate(0, 0, 1)
	}
	return t.UTC()
}
