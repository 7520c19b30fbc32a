// Package webterminal shows the terminals of one host's sessions in a browser. It serves
// one page for each session, by its exact kind, namespace and name: read-only, unless the
// operator allows writing and a person takes the keys, one at a time. Who wants in needs the
// token of the state directory, from a page of our own.
//
// A viewer is a read-only tmux client (tmux.View); what a writer types goes to the pane
// itself and through no key table. So no browser reaches another session, a command of
// tmux, or a harness that has ended, whatever it sends (U10, U12).
//
// With the provider ttyd the terminal is that of a ttyd child, which shows the host's
// shared hub session; it listens on a socket of the state directory, behind the same
// checks.
package webterminal
