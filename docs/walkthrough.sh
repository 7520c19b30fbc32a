#!/usr/bin/env bash
# A walk through the command line, for whoever comes new to it and has `make run` going in
# another shell. The programs are in bin; run it in a terminal:
#
#     PATH=$PWD/bin:$PATH docs/walkthrough.sh
#
# It uses sessions of its own (helper, and the work item github:octo/repo#15), and
# removes them at the end. Everything it does you can type yourself.
set -euo pipefail

step() { printf '\n== %s\n' "$1"; }
run() {
	printf '$ %s\n' "$*"
	"$@"
}
# fails CODE COMMAND...: shows a command that is refused, with its exit code.
fails() {
	local want=$1 code=0
	shift
	printf '$ %s\n' "$*"
	"$@" || code=$?
	printf '(exit code %s)\n' "$code"
	[ "$code" = "$want" ]
}

step "Is everything there? The doctor says nothing when it is."
run the-loop doctor
run the-loop status
run the-loop hosts list
run the-loop classes list

step "A standing session of your own, and what is known of it."
run the-loop standing create helper --description "Shows how it is done." --prompt "Say hello in one sentence."
run the-loop standing list
run the-loop standing get helper
fails 2 the-loop standing create helper

step "Speak to it. With --wait the exit code is 0 only when the harness took it."
run the-loop standing say helper How are you getting on? --wait
run the-loop messages list --session helper
run the-loop standing logs helper

step "Attach to it: leave with Ctrl-b d."
run the-loop standing attach helper

step "Hold what is said to it, find out what a message waits for, take it back, and go on."
run the-loop standing hold helper
message=$(the-loop standing say helper Never mind. -o name)
message=${message#*/}
run the-loop messages get "$message"
run the-loop explain "$message"
run the-loop messages recall "$message"
run the-loop standing resume helper

step "Pause it: what is said to it is refused until it is resumed."
run the-loop standing pause helper
fails 1 the-loop standing say helper "Can you hear me?"
run the-loop standing resume helper

step "Restart it, stop it, start it: the conversation goes on."
run the-loop standing restart helper
run the-loop standing stop helper
fails 1 the-loop standing say helper "Are you there?"
run the-loop explain helper
run the-loop standing start helper
run the-loop standing start helper

step "A session for a work item. Its name is its reference."
run the-loop sessions start "github:octo/repo#15" --prompt "Look into it."
run the-loop sessions list
run the-loop sessions get "github:octo/repo#15"
run the-loop sessions say "github:octo/repo#15" "Go on." --wait
run the-loop sessions logs "github:octo/repo#15"
run the-loop sessions attach "github:octo/repo#15" --print
run the-loop sessions pause "github:octo/repo#15"
run the-loop sessions hold "github:octo/repo#15"
run the-loop sessions resume "github:octo/repo#15"
run the-loop sessions restart "github:octo/repo#15"
run the-loop sessions link-pr "github:octo/repo#15" --pull-request 16
run the-loop sessions close "github:octo/repo#16"
run the-loop sessions stop "github:octo/repo#15"

step "A conversation that was started by hand is registered; the next message resumes it."
run the-loop sessions register "github:octo/repo#17" --conversation by-hand-1 --cwd /tmp
run the-loop explain "github:octo/repo#17"

step "What takes something away says what before it does it; a dry run only says it."
run the-loop sessions cleanup "github:octo/repo#15" --dry-run
run the-loop sessions cleanup "github:octo/repo#15"
run the-loop sessions undo-cleanup "github:octo/repo#15"
fails 2 the-loop sessions reset
run the-loop sessions reset "github:octo/repo#15" "github:octo/repo#17"
run the-loop standing delete helper

step "Hosts take no more sessions while they are cordoned. Harnesses say which models they take."
host=$(the-loop hosts list -o name | head -n 1)
host=${host#*/}
run the-loop hosts cordon "$host"
run the-loop hosts uncordon "$host"
run the-loop hosts drain "$host" --dry-run
run the-loop models check --cached

step "What happened."
run the-loop events

step "Done: the-loop standing list shows what you began with."
run the-loop standing list
