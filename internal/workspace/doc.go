// Package workspace makes, reuses and removes the checkouts that sessions work in. It is
// the only package that runs git.
//
// Everything lies below one root:
//
//	<host>/<owner>/<repo>                       the clone that worktrees share
//	.worktrees/<host>/<owner>/<repo>/<name>     a checkout, strategy Worktree
//	.work-items/<name>/<host>/<owner>/<repo>    a checkout, strategy Clone
//	.locks/<slug>                               one caller at a time for an item
//
// <name> is the slug of the work item. Slugs collide (W3), so that a claim file beside
// each checkout holds the full reference: a checkout of another reference is never
// reused and never removed, and the one that comes second gets a name with a hash.
//
// Uncommitted and unpushed work is kept in an undo directory before its checkout is
// removed, and nothing is removed when it cannot be kept.
package workspace
