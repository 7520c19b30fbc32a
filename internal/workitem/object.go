package workitem

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

const (
	// maxLabel is the length of a DNS-1123 label, which every object name keeps to.
	maxLabel = 63
	// refHash, pullRequestHash and messageHash are the numbers of hexadecimal digits
	// that end the three kinds of hashed object names. They differ, so that a name of
	// one kind is never one of another.
	refHash         = 10
	pullRequestHash = 12
	messageHash     = 16
	// maxPlainDigits is the longest number that a name without a hash may end in:
	// shorter than any hash, so that no ref can be made to look like a hashed one.
	maxPlainDigits = refHash - 1
)

var labelGap = regexp.MustCompile(`[^a-z0-9-]+`)

// ObjectName is the name of the WorkItemSession of this work item: a DNS-1123
// label of at most 63 characters.
//
// It is <provider>-<owner>-<repo>-<number> when nothing is lost in that, else a
// readable part of it followed by 10 hex of sha256(ref). Nothing is lost exactly
// when decode reads the ref back out of the name, taking the provider up to the
// first dash, the owner up to the second and the number after the last: so
// github:octo/foo-bar#1 is github-octo-foo-bar-1, and github:octo-foo/bar#1, which
// would be the same, is hashed, as is whatever has a host, a capital letter, a dot
// or any other character that a label cannot hold, more than 63 characters, or a
// number of ten digits or more.
//
// Two valid refs never share a name. Plain names are decoded to their one ref;
// they end in at most nine digits, hashed ones in ten, so neither is the other;
// and hashed names with different hashes differ. What remains is two refs with one
// hash of 40 bits and the same readable part: the ref in the object's
// specification, not its name, is what a reader must compare.
func (r Ref) ObjectName() string {
	if r.Host == githubHost {
		r.Host = ""
	}
	plain := r.joined()
	if got, ok := decode(plain); ok && got == r {
		return plain
	}
	number := strconv.FormatInt(r.Number, 10)
	room := maxLabel - 1 - refHash - 1 - len(number)
	return label(strings.TrimSuffix(plain, "-"+number), room) + "-" + number + "-" + r.hash()[:refHash]
}

// PullRequestObjectName is the name of the WorkItemSession that hosts the pull
// request pr of the work item parent: what is readable of the parent, pr<number>,
// and 12 hex of a hash over both refs. It is always hashed: it must differ from the
// ObjectName of every ref, also of pr itself, and from the name of the same pull
// request under another parent. It is a DNS-1123 label of at most 63 characters.
func PullRequestObjectName(parent, pr Ref) string {
	end := "-pr" + strconv.FormatInt(pr.Number, 10) + "-" +
		hashParts(pullRequestHash, "pull-request", parent.String(), pr.String())
	return label(parent.joined(), maxLabel-len(end)) + end
}

// MessageName is the name of the SessionMessage that carries the event with this
// natural key (a delivery id, a comment's URL, ...) to the session with this name
// and UID: <session>-<16 hex of sha256(natural key, session uid)>. Creating it
// twice is the dedupe. The hash takes the two inputs with their lengths, so that no
// other pair gives the same bytes. It is a DNS-1123 label of at most 63 characters
// for every input.
func MessageName(sessionName, naturalKey, sessionUID string) string {
	end := "-" + hashParts(messageHash, naturalKey, sessionUID)
	return label(strings.ToLower(sessionName), maxLabel-len(end)) + end
}

// joined is the unhashed name: all parts of the ref joined by dashes.
func (r Ref) joined() string {
	path := strings.ReplaceAll(r.Path(), "/", "-")
	return strings.ToLower(r.Provider + "-" + path + "-" + strconv.FormatInt(r.Number, 10))
}

// decode reads a ref out of an object name without a hash. It fails on everything
// that ObjectName would not have built without one.
func decode(name string) (Ref, bool) {
	if len(name) > maxLabel || labelGap.MatchString(name) {
		return Ref{}, false
	}
	provider, rest, ok1 := strings.Cut(name, "-")
	owner, rest, ok2 := strings.Cut(rest, "-")
	last := strings.LastIndex(rest, "-")
	if !ok1 || !ok2 || last < 0 {
		return Ref{}, false
	}
	repo, digits := rest[:last], rest[last+1:]
	if len(digits) > maxPlainDigits {
		return Ref{}, false
	}
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return Ref{}, false
	}
	r, err := New(provider, "", owner, repo, number)
	return r, err == nil
}

// label makes a readable beginning of a DNS-1123 label from s, of 1 to room
// characters, which neither begins nor ends with a dash.
func label(s string, room int) string {
	s = strings.Trim(labelGap.ReplaceAllString(s, "-"), "-")
	if len(s) > room {
		s = strings.TrimRight(s[:room], "-")
	}
	if s == "" {
		return "x"
	}
	return s
}

// hashParts is the first n hexadecimal digits of the sha256 of the parts, each
// written after its length.
func hashParts(n int, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":" + p))
	}
	return hex.EncodeToString(h.Sum(nil))[:n]
}
