package tmux

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// version is a tmux version as far as it can be compared. tmux calls itself
// "3.3a", "next-3.8" (before a release), "master" or "openbsd-7.5".
type version struct {
	text         string
	major, minor int
	// known is false for a name that carries no tmux number.
	known bool
}

var versionPattern = regexp.MustCompile(`^(?:next-)?([0-9]{1,4})\.([0-9]{1,4})`)

// parseVersion reads "tmux 3.3a" (tmux -V) and "3.3a" (#{version}).
func parseVersion(s string) version {
	s = strings.TrimPrefix(strings.TrimSpace(s), "tmux ")
	v := version{text: s}
	if m := versionPattern.FindStringSubmatch(s); m != nil {
		v.major, _ = strconv.Atoi(m[1])
		v.minor, _ = strconv.Atoi(m[2])
		v.known = true
	}
	return v
}

// The versions in which something that matters here changed.
var (
	v32 = parseVersion("3.2") // the minimum
	v33 = parseVersion("3.3") // says which signal ended a pane's process
	v34 = parseVersion("3.4") // survives a paste into a dead pane
	v36 = parseVersion("3.6") // speaks another protocol than older clients
	v37 = parseVersion("3.7") // makes control characters of a paste visible, unless told not to
)

// before reports whether v is certainly older than other.
func (v version) before(other version) bool {
	return v.known && (v.major < other.major || v.major == other.major && v.minor < other.minor)
}

func (v version) String() string { return v.text }

// checkVersion refuses what cannot host: -N, -D, new-session -e and copy-mode -q
// appeared in 3.2. whose says which of client and server is meant.
func checkVersion(whose string, v version) error {
	if v.before(v32) {
		return fmt.Errorf("the tmux %s is version %s, but 3.2 is the minimum and 3.4 or newer is recommended: upgrade it%s",
			whose, v, map[bool]string{true: " and restart the server"}[whose == "server"])
	}
	return nil
}

// versionWarning says what is not refused but should be known.
func versionWarning(whose string, v version) string {
	switch {
	case !v.known:
		return fmt.Sprintf("the tmux %s calls itself %q, which cannot be compared: it is taken for a recent one", whose, v)
	case v.before(v34):
		return fmt.Sprintf("the tmux %s is version %s: a paste into a pane whose program has ended crashes a server older than 3.4 "+
			"and with it every session; ours are guarded, a person's are not: upgrade to 3.4 or newer", whose, v)
	}
	return ""
}
