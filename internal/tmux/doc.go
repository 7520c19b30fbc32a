// Package tmux hosts sessions in one tmux server of our own. It is the only
// package that runs tmux.
//
// Four rules shape it:
//
//   - Silence is never absence. An answer counts only with a closing line that the
//     server itself wrote; exit status 0 proves nothing, and whatever is no
//     authoritative answer is an *UnknownError.
//   - Identity is the stamp @loop_uid, an id and the server's epoch, never a name: tmux
//     resolves names by prefix and by pattern, and "=name" without a colon is not exact
//     for commands that take a pane.
//   - What types, kills or changes is decided inside the server, in the very command that
//     does it (if-shell -F), never by a look before it.
//   - Ours only: a session without our stamp is listed and otherwise left alone.
//
// tmux 3.2 is the minimum. Hosting needs Linux (pidfd and /proc); elsewhere the
// package compiles and New refuses.
package tmux
