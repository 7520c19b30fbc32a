package workspace

import (
	"errors"
	"strings"
)

// Reason classifies an Error, in the form of a condition's reason.
type Reason string

const (
	// ReasonInvalidRequest: the request can never be served as it is written.
	ReasonInvalidRequest Reason = "InvalidWorkspaceRequest"
	// ReasonRootUnusable: the root cannot hold checkouts.
	ReasonRootUnusable Reason = "WorkspaceRootUnusable"
	// ReasonOutsideRoot: a symlink below the root leads elsewhere.
	ReasonOutsideRoot Reason = "WorkspaceOutsideRoot"
	// ReasonOccupied: something that is not the item's is where its checkout belongs.
	ReasonOccupied Reason = "WorkspaceOccupied"
	// ReasonDamaged: a clone or checkout is there that git cannot read.
	ReasonDamaged Reason = "WorkspaceDamaged"
	// ReasonBranchInUse: another checkout holds the branch (C141).
	ReasonBranchInUse Reason = "BranchInUse"
	// ReasonWrongBranch: the checkout exists, on another branch than the required one.
	ReasonWrongBranch Reason = "WrongBranch"
	// ReasonRefNotFound: the repository has no such branch, tag, commit or pull request.
	ReasonRefNotFound Reason = "RefNotFound"
	// ReasonRepositoryNotFound: the host says that there is no such repository, or hides it.
	ReasonRepositoryNotFound Reason = "RepositoryNotFound"
	// ReasonAuthenticationFailed: the host wants other credentials.
	ReasonAuthenticationFailed Reason = "AuthenticationFailed"
	// ReasonCloneFailed: the repository could not be cloned for another reason.
	ReasonCloneFailed Reason = "CloneFailed"
	// ReasonFetchFailed: the repository could not be fetched from for another reason.
	ReasonFetchFailed Reason = "FetchFailed"
	// ReasonLocked: a lock file of git's is in the way.
	ReasonLocked Reason = "GitLocked"
	// ReasonTimeout: git, or another caller, took too long.
	ReasonTimeout Reason = "GitTimeout"
	// ReasonCanceled: the caller's context ended.
	ReasonCanceled Reason = "Canceled"
	// ReasonGitMissing: git could not be run at all.
	ReasonGitMissing Reason = "GitMissing"
	// ReasonBundleFailed: unsaved work could not be kept, so that nothing was removed.
	ReasonBundleFailed Reason = "BundleFailed"
	// ReasonFailed: anything else.
	ReasonFailed Reason = "WorkspaceFailed"
)

// Error is what every operation of this package returns. Its text is for a person: what
// was to be done, what happened, and what to do about it. It never holds credentials.
type Error struct {
	Reason Reason
	// Op is what was to be done, as in "preparing the checkout of github:octo/repo#1".
	Op string
	// Problem is what happened.
	Problem string
	// Remedy is what a person can do, "" when there is nothing but trying again.
	Remedy string
	// Path is the directory that it is about, "" when there is none.
	Path string
	// Branch and HeldBy belong to ReasonBranchInUse: the branch, and the reference whose
	// checkout at Path has it; HeldBy is "" when that is not a checkout of ours.
	Branch, HeldBy string
	// Err is the cause, if there is one.
	Err error
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op + ": ")
	}
	b.WriteString(e.Problem)
	if e.Remedy != "" {
		b.WriteString(": " + e.Remedy)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retry reports whether trying again later can help without anybody doing something.
func (e *Error) Retry() bool {
	switch e.Reason {
	case ReasonCloneFailed, ReasonFetchFailed, ReasonLocked, ReasonTimeout, ReasonCanceled, ReasonFailed:
		return true
	}
	return false
}

// ReasonOf is the reason of an error of this package: ReasonFailed for any other error,
// "" for nil.
func ReasonOf(err error) Reason {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Reason
	}
	return ReasonFailed
}

// during says what was to be done when err happened. An error that is not typed yet
// becomes one.
func during(op string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		if e.Op == "" {
			e.Op = op
		}
		return err
	}
	out := classify(err, ReasonFailed)
	out.Op = op
	return out
}

func invalid(problem, remedy string) *Error {
	return &Error{Reason: ReasonInvalidRequest, Problem: problem, Remedy: remedy}
}
