package workitem

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	// tmuxPrefix begins the name of every tmux session that is ours, and of none
	// that is not: the anchor that keeps the server alive is loop_anchor.
	tmuxPrefix = "loop-"
	// tmuxHash is how many hexadecimal digits set apart a name that is taken.
	tmuxHash = 6
	// maxTmuxName is the length that every tmux name keeps to (N10).
	maxTmuxName = 200
	// maxSlug leaves room in a tmux name for the prefix and the hash.
	maxSlug = maxTmuxName - len(tmuxPrefix) - 1 - tmuxHash
	// slugHash is how many hexadecimal digits a truncated slug carries.
	slugHash = 10
)

// StandingNamePattern is the form of a standing session's name (specification
// 1.4). It has no multi-line flag, so that a trailing newline does not match
// (C009).
const StandingNamePattern = `^[a-z0-9][a-z0-9-]{0,39}$`

var (
	standingName = regexp.MustCompile(StandingNamePattern)
	oursTarget   = regexp.MustCompile(`^loop-[A-Za-z0-9_-]+$`)
)

// Slug is the readable file-name form of the ref: provider, path and number
// joined by dashes, every run of other characters than letters, digits, dot,
// underscore and dash made one dash (specification 1.2). Dots and case stay. It
// is not injective (W3): octo/foo-bar#1 and octo-foo/bar#1 share a slug, so that
// whoever finds something under a slug compares the ref stored there. A slug of
// more than 188 characters is cut, and 10 hex of sha256(ref) and the number end
// it (N10).
func (r Ref) Slug() string {
	number := strconv.FormatInt(r.Number, 10)
	slug := r.Provider + "-" + strings.ReplaceAll(r.Path(), "/", "-") + "-" + number
	slug = slugGap.ReplaceAllString(slug, "-")
	if len(slug) <= maxSlug {
		return slug
	}
	end := "-" + r.hash()[:slugHash] + "-" + number
	return slug[:maxSlug-len(end)] + end
}

// TmuxName is the name of the work item's tmux session, loop-<slug> in tmux's own
// spelling (specification 1.2, C001, N04). It matches
// ^[A-Za-z][A-Za-z0-9_-]{0,199}$ for every ref, ends in -<number>, and is never
// the name of a standing session or of the anchor. Refs can share it (C006, C007,
// N05): DisambiguatedTmuxName is for the one that comes second.
func (r Ref) TmuxName() string {
	return tmuxPrefix + NormalizeTarget(r.Slug())
}

// DisambiguatedTmuxName is TmuxName followed by 6 hex of sha256(ref): the name of
// a work item that finds its TmuxName taken by another one (W3, N05, N20). The
// digits are the first six in a row with a letter among them: so it is nobody's
// TmuxName, which ends in a number.
func (r Ref) DisambiguatedTmuxName() string {
	sum := r.hash()
	for i := 0; i+tmuxHash <= len(sum); i++ {
		if six := sum[i : i+tmuxHash]; strings.ContainsAny(six, "abcdef") {
			return r.TmuxName() + "-" + six
		}
	}
	return r.TmuxName() + "-f" + sum[:tmuxHash-1] // sixty decimal digits in a row
}

// hash is sha256(ref) in hexadecimal.
func (r Ref) hash() string {
	sum := sha256.Sum256([]byte(r.String()))
	return hex.EncodeToString(sum[:])
}

// StandingName refuses a name that no standing session may have, naming the
// allowed form (specification 1.4, C009, N07).
func StandingName(name string) error {
	if standingName.MatchString(name) {
		return nil
	}
	return fmt.Errorf("%s is not a name for a standing session: write 1 to 40 lower-case letters, digits and dashes, not beginning with a dash (%s)",
		quote(name), StandingNamePattern)
}

// StandingTmuxName is the name of a standing session's tmux session, for a name
// that StandingName accepts (specification 1.4).
func StandingTmuxName(name string) string {
	return tmuxPrefix + standing + "-" + name
}

// NormalizeTarget is the spelling in which tmux keeps a session name: dot and
// colon are its target grammar and become underscores. It is applied to every
// tmuxTarget read from a record, so that one written before the rule addresses the
// session that exists (specification 1.2, C002). It is idempotent.
func NormalizeTarget(t string) string {
	return strings.Map(func(c rune) rune {
		if c == '.' || c == ':' {
			return '_'
		}
		return c
	}, t)
}

// OursTarget reports whether t can be the name of a tmux session of ours. It is
// asked before any process of a recorded target is signalled (specification 1.2);
// it does not replace the session's stamp, which alone says whose it is.
func OursTarget(t string) bool {
	return oursTarget.MatchString(t)
}
