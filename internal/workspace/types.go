package workspace

import (
	"time"

	"github.com/theloop-dev/the-loop/internal/workitem"
)

// Strategy is how checkouts of one repository relate. Its values are those of
// SessionClass spec.workspace.strategy.
type Strategy string

const (
	// Worktree: one clone, and a worktree of it for each item.
	Worktree Strategy = "Worktree"
	// Clone: a clone for each item.
	Clone Strategy = "Clone"
)

// Protocol is how repositories are fetched. Its values are those of SessionClass
// spec.workspace.cloneProtocol.
type Protocol string

const (
	// HTTPS: https://<host>/<owner>/<repo>.git.
	HTTPS Protocol = "HTTPS"
	// SSH: git@<host>:<owner>/<repo>.git. A port of the host is that of its web
	// interface, and is left out.
	SSH Protocol = "SSH"
)

// Config says where and how checkouts are made.
type Config struct {
	// Root is the directory that holds everything, absolute. It is made when it does
	// not exist.
	Root string
	// Strategy for new checkouts; "" is Worktree. A checkout that exists is found
	// whatever strategy it was made with.
	Strategy Strategy
	// Protocol for clones and fetches; "" is HTTPS.
	Protocol Protocol
	// Git is the git to run; "" looks for git on PATH.
	Git string
	// Timeout bounds each run of git; 0 is 30 minutes. Waiting for another caller is
	// bounded by the context alone.
	Timeout time.Duration
	// Env is the environment git gets, cleaned of what could lead it to another
	// repository; nil is that of this process.
	Env []string
}

// Repository is one repository.
type Repository struct {
	// Host with an optional port; "" is github.com.
	Host string `json:"host,omitempty"`
	// Owner and Repo match ^[A-Za-z0-9][A-Za-z0-9._-]*$ (C143).
	Owner string `json:"owner"`
	Repo  string `json:"repo"`
}

// RepositoryOf is the repository that a work item is in.
func RepositoryOf(r workitem.Ref) Repository {
	return Repository{Host: r.Host, Owner: r.Owner, Repo: r.Repo}
}

// String is <owner>/<repo>, with <host>/ in front when it is not github.com.
func (r Repository) String() string {
	if r.Host == "" || r.Host == defaultHost {
		return r.Owner + "/" + r.Repo
	}
	return r.Host + "/" + r.Owner + "/" + r.Repo
}

// Request asks for the checkout of one work item or pull request.
type Request struct {
	// Item is whose checkout it is: the key by which it is found again and removed.
	Item workitem.Ref
	// Repository to check out; the zero value is the item's own.
	Repository Repository
	// Ref is the branch, tag or full commit to start from, detached. It goes before
	// Branch and PullRequest. "" is the head of the pull request, or the default branch.
	Ref string
	// Branch of the repository to be on: the head of a pull request from the repository
	// itself. It must not be the name of a branch in a fork.
	Branch string
	// PullRequest is the number of a pull request whose head is checked out, detached,
	// when Branch is "" or is not in the repository: refs/pull/<n>/head. 0 is none.
	PullRequest int64
	// RequireBranch refuses everything but the head that was asked for: Branch, or that
	// of PullRequest where no Branch is named. Without it, a head that is not there or
	// is in use gives the default branch, detached.
	RequireBranch bool
}

// Checkout is a directory that a session can work in.
type Checkout struct {
	// Path is absolute.
	Path string
	// Item and Repository are what it is a checkout of.
	Item       workitem.Ref
	Repository Repository
	// Strategy it was made with, which may be another than the Manager's.
	Strategy Strategy
	// Branch it is on, "" when it is detached.
	Branch string
	// Head is the commit that is checked out; "" before the first commit.
	Head string
	// Reused means that it existed and was left as it was.
	Reused bool
	// Missed is why the head that was asked for is not checked out, nil when it is.
	Missed error
	// Notes are for a person: what went on beside what was asked for.
	Notes []string
}
