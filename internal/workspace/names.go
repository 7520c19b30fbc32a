package workspace

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/theloop-dev/the-loop/internal/workitem"
)

const (
	defaultHost = "github.com"
	// maxComponent leaves room for our own prefix and suffix in a file name of 255 bytes.
	maxComponent = 220
	// maxRefName bounds a branch or tag name, in bytes.
	maxRefName = 255
)

var (
	componentPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	// A host holds no underscore, so that replacing its colon by one stays injective.
	hostPattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?$`)
	commitPattern = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

// checkComponent refuses what must not become a part of a path or a URL (C143).
func checkComponent(what, s string) error {
	if len(s) <= maxComponent && componentPattern.MatchString(s) {
		return nil
	}
	return invalid(fmt.Sprintf("the %s %s cannot be a directory", what, quoted(s)),
		fmt.Sprintf("it must match %s and have at most %d characters", componentPattern, maxComponent))
}

// checkRefName refuses what is not a plain branch or tag name. It is stricter than git:
// nothing that git could read as an option or as an expression passes (W48).
func checkRefName(what, s string) error {
	if refName(s) {
		return nil
	}
	return invalid(fmt.Sprintf("the %s %s is not a plain name", what, quoted(s)),
		`write the name of a branch or tag, or a full commit: not beginning with "-", `+
			`and without "..", "@{", blanks and any of ~^:?*[\`)
}

func refName(s string) bool {
	if s == "" || len(s) > maxRefName || s == "HEAD" || s == "@" || !utf8.ValidString(s) ||
		strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.ContainsAny(s, " ~^:?*[\\\x7f") {
		return false
	}
	for _, r := range s {
		if r < ' ' {
			return false
		}
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || part[0] == '-' || strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

func quoted(s string) string {
	const most = 100
	if len(s) > most {
		return fmt.Sprintf("%q...", s[:most])
	}
	return fmt.Sprintf("%q", s)
}

// normalised checks a repository and fills in the default host.
func (r Repository) normalised() (Repository, error) {
	if r.Host == "" {
		r.Host = defaultHost
	}
	if len(r.Host) > maxComponent || !hostPattern.MatchString(r.Host) || strings.Contains(r.Host, "..") {
		return r, invalid(fmt.Sprintf("the host %s cannot be a directory", quoted(r.Host)),
			"write a name with an optional :port")
	}
	if err := checkComponent("owner", r.Owner); err != nil {
		return r, err
	}
	return r, checkComponent("repository", r.Repo)
}

// dir is the repository's path below the root, for a repository that is normalised.
func (r Repository) dir() string {
	return filepath.Join(strings.Replace(r.Host, ":", "_", 1), r.Owner, r.Repo)
}

// url is where it is fetched from. It is built, never taken from a payload (W48).
func (r Repository) url(p Protocol) string {
	if p == SSH {
		host, _, _ := strings.Cut(r.Host, ":")
		return "git@" + host + ":" + r.Owner + "/" + r.Repo + ".git"
	}
	return "https://" + r.Host + "/" + r.Owner + "/" + r.Repo + ".git"
}

// names are the directory names that a checkout of the item can have: the slug, and the
// slug with the hash that also sets its terminal session apart, for the item that comes
// second (W3). No slug ends like that.
func names(item workitem.Ref) []string {
	slug := item.Slug()
	return []string{slug, slug + strings.TrimPrefix(item.DisambiguatedTmuxName(), item.TmuxName())}
}

// checkItem refuses a reference whose slug cannot be a directory.
func checkItem(item workitem.Ref) error {
	if _, err := workitem.New(item.Provider, item.Host, item.Owner, item.Repo, item.Number); err != nil {
		return &Error{Reason: ReasonInvalidRequest, Problem: err.Error(), Err: err}
	}
	return checkComponent("slug", item.Slug())
}
