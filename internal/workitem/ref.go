// Package workitem knows what a work item is called: the reference that people
// and payloads write, and every name that is derived from it (slug, tmux session
// name, object names). It is pure: no I/O, no Kubernetes, the standard library
// only. Identity is never read back out of a name; a name is only a deterministic
// place to look, and whoever looks compares the reference stored there.
package workitem

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Form is the expected form of a reference, as error messages print it.
const Form = "<provider>:[<host>/]<owner>/<repo>#<number>, for example github:octo/repo#15"

// ErrInvalidRef is wrapped by every refusal of Parse and New.
var ErrInvalidRef = errors.New("not a work item reference")

const (
	github     = "github"
	githubHost = "github.com"
	// standing is the scheme of standing session references (specification 1.4).
	standing = "standing"
	// quoteMax bounds how much of a refused input an error repeats (N10).
	quoteMax = 200
)

var (
	providerPattern = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	hostPattern     = regexp.MustCompile(`^(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::[0-9]+)?|[A-Za-z0-9-]+:[0-9]+)$`)
	segmentPattern  = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	digitsPattern   = regexp.MustCompile(`^[0-9]+$`)
	slugGap         = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
)

// Ref is one work item, or one pull request: both are numbered in one sequence,
// and nothing in a reference tells which it is (specification 1.3). Two valid
// refs are the same work item exactly when they are equal with ==; case is
// significant.
type Ref struct {
	// Provider is the tracker, "github". Others parse, but get no URL.
	Provider string
	// Host is the provider's host with an optional port; "" is github.com.
	Host string
	// Owner and Repo are neither empty, "." nor "..", and hold no slash and no
	// "#". Their charset is checked where it matters (PathSafe), not when they are
	// read (specification 1.1).
	Owner, Repo string
	// Number is 1 or more.
	Number int64
}

// Parse reads a reference of the form <provider>:[<host>/]<owner>/<repo>#<number>
// (specification 1.1). Blanks around it are dropped; the host github.com is the
// default and is not kept (C004). Its errors name the expected form and what was
// wrong (C003, C008), and wrap ErrInvalidRef.
func Parse(s string) (Ref, error) {
	in := strings.TrimSpace(s)
	provider, rest, ok := strings.Cut(in, ":")
	if !ok {
		return Ref{}, refuse(in, `there is no "<provider>:" in it`)
	}
	if err := checkProvider(provider); err != nil {
		return Ref{}, refuse(in, err.Error())
	}
	path, digits, ok := strings.Cut(rest, "#")
	if !ok {
		return Ref{}, refuse(in, `there is no "#<number>" in it`)
	}
	if !digitsPattern.MatchString(digits) {
		return Ref{}, refuse(in, "what follows the # is not a decimal number")
	}
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return Ref{}, refuse(in, "the number is too large")
	}
	r := Ref{Provider: provider, Number: number}
	switch parts := strings.Split(path, "/"); len(parts) {
	case 2:
		r.Owner, r.Repo = parts[0], parts[1]
	case 3:
		if !hostPattern.MatchString(parts[0]) {
			return Ref{}, refuse(in, fmt.Sprintf("of three path parts the first must be a host (dotted, or with a port), which %s is not", quote(parts[0])))
		}
		r.Host, r.Owner, r.Repo = parts[0], parts[1], parts[2]
	default:
		return Ref{}, refuse(in, fmt.Sprintf("its path has %d parts, not <owner>/<repo> or <host>/<owner>/<repo>", len(parts)))
	}
	return r.normalised(in)
}

// New builds a reference from its fields under the rules of Parse: what New
// accepts, Parse reads back from String, and the reverse. Its errors wrap
// ErrInvalidRef.
func New(provider, host, owner, repo string, number int64) (Ref, error) {
	r := Ref{Provider: provider, Host: host, Owner: owner, Repo: repo, Number: number}
	return r.normalised(r.String())
}

// normalised returns r with the default host dropped, or why r is refused; in is
// what the caller was given, for the error.
func (r Ref) normalised(in string) (Ref, error) {
	if err := checkProvider(r.Provider); err != nil {
		return Ref{}, refuse(in, err.Error())
	}
	if r.Host != "" && !hostPattern.MatchString(r.Host) {
		return Ref{}, refuse(in, fmt.Sprintf("%s is not a host (dotted, or with a port)", quote(r.Host)))
	}
	if err := checkSegment("owner", r.Owner); err != nil {
		return Ref{}, refuse(in, err.Error())
	}
	if err := checkSegment("repo", r.Repo); err != nil {
		return Ref{}, refuse(in, err.Error())
	}
	if r.Number < 1 {
		return Ref{}, refuse(in, "the number must be 1 or more")
	}
	if r.Host == githubHost {
		r.Host = ""
	}
	return r, nil
}

// checkProvider refuses what the grammar refuses, and the providers whose tmux
// names could be read as a standing session's: "standing" itself (specification
// 1.4) and everything that begins with "standing-", because loop-standing-x-o-r-1
// would be both standing-x:o/r#1 and the standing session x-o-r-1.
func checkProvider(p string) error {
	switch {
	case !providerPattern.MatchString(p):
		return fmt.Errorf("the provider %s is not lower-case letters, digits and dashes", quote(p))
	case p == standing:
		return errors.New("standing sessions are not work items")
	case strings.HasPrefix(p, standing+"-"):
		return errors.New(`a provider must not begin with "standing-"`)
	}
	return nil
}

// checkSegment checks an owner or a repo as far as it is checked when read.
func checkSegment(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("the %s is empty", what)
	case s == "." || s == "..":
		return fmt.Errorf("the %s must not be %q", what, s)
	case strings.ContainsAny(s, "/#"):
		return fmt.Errorf("the %s %s holds a / or a #", what, quote(s))
	case !utf8.ValidString(s):
		return fmt.Errorf("the %s %s is not valid UTF-8", what, quote(s))
	}
	return nil
}

// refuse is the one error of this file: what was given, what was wrong, and what
// would have been right.
func refuse(in, why string) error {
	return fmt.Errorf("%s is %w: %s; write %s", quote(in), ErrInvalidRef, why, Form)
}

// quote makes untrusted text safe and short enough for a message.
func quote(s string) string {
	if len(s) <= quoteMax {
		return strconv.Quote(s)
	}
	return strconv.Quote(strings.ToValidUTF8(s[:quoteMax], "")) + "..."
}

// String is the reference as it is written everywhere: the key of all that is
// derived from it.
func (r Ref) String() string {
	return r.Provider + ":" + r.Path() + "#" + strconv.FormatInt(r.Number, 10)
}

// Path is <owner>/<repo>, with <host>/ in front when the host is not github.com
// (specification 1.2).
func (r Ref) Path() string {
	if r.Host == "" || r.Host == githubHost {
		return r.Owner + "/" + r.Repo
	}
	return r.Host + "/" + r.Owner + "/" + r.Repo
}

// PathSafe reports whether owner and repo may be put into a URL, an argv or a
// path: letters, digits, dot, underscore and dash only (specification 1.1), and
// neither of them "." or ".." (C143).
func (r Ref) PathSafe() bool {
	for _, s := range []string{r.Owner, r.Repo} {
		if !segmentPattern.MatchString(s) || s == "." || s == ".." {
			return false
		}
	}
	return true
}

// URL is the page of the work item, also of a pull request (GitHub redirects). It
// is "" for a provider other than github and when the ref is not PathSafe
// (specification 1.1). A port of the host is kept (C005).
func (r Ref) URL() string {
	if r.Provider != github || !r.PathSafe() {
		return ""
	}
	host := r.Host
	if host == "" {
		host = githubHost
	}
	if !hostPattern.MatchString(host) {
		return ""
	}
	return "https://" + host + "/" + r.Owner + "/" + r.Repo + "/issues/" + strconv.FormatInt(r.Number, 10)
}
