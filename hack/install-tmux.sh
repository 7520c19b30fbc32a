#!/bin/sh
# Makes sure that tmux 3.2 or newer and git are there: installs what is missing
# with the system's package manager when it may, else says what to do and exits 1.
# Says nothing when there is nothing to do.
set -eu

# tmux_ok is true when tmux is there and new enough. Its version reads "tmux 3.3a",
# "tmux next-3.7", "tmux master" or, on OpenBSD, "tmux openbsd-7.4".
tmux_ok() {
	version=$(tmux -V 2>/dev/null) || return 1
	version=${version#tmux }
	version=${version#next-}
	case $version in
	master | openbsd-*) return 0 ;;
	[0-9]*.[0-9]*) ;;
	*) return 1 ;;
	esac
	major=${version%%.*}
	minor=${version#*.}
	minor=${minor%%[!0-9]*}
	[ "$major" -gt 3 ] || { [ "$major" -eq 3 ] && [ "$minor" -ge 2 ]; }
}

# missing prints the packages to install.
missing() {
	tmux_ok || echo tmux
	command -v git >/dev/null 2>&1 || echo git
}

# manager prints the command that installs packages here, or nothing.
manager() {
	if [ "$(id -u)" -ne 0 ]; then
		if command -v brew >/dev/null 2>&1; then echo "brew install -q"; fi
	elif command -v apt-get >/dev/null 2>&1; then
		echo "apt-get install -y -q --no-install-recommends"
	elif command -v dnf >/dev/null 2>&1; then
		echo "dnf install -y -q"
	elif command -v apk >/dev/null 2>&1; then
		echo "apk add -q"
	elif command -v pacman >/dev/null 2>&1; then
		echo "pacman -Sy --noconfirm --needed"
	fi
}

# refresh updates the package lists where that is a step of its own.
refresh() {
	case $1 in
	apt-get*) apt-get update -q ;;
	apk*) apk update -q ;;
	esac
}

packages=$(missing | tr '\n' ' ')
packages=${packages% }
[ -n "$packages" ] || exit 0

install=$(manager)
if [ -z "$install" ]; then
	echo "the-loop needs tmux 3.2 or newer and git; missing or too old here: $packages." >&2
	echo "Install with your package manager, for example: sudo apt-get install $packages" >&2
	exit 1
fi

echo "installing $packages: $install $packages" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Word splitting is meant: both are lists of plain words.
# shellcheck disable=SC2086
if ! { refresh "$install" && $install $packages; } >"$log" 2>&1 </dev/null; then
	cat "$log" >&2
	echo "installing $packages failed; install it by hand and try again" >&2
	exit 1
fi
packages=$(missing | tr '\n' ' ')
if [ -n "$packages" ]; then
	echo "after the installation still missing or too old: $packages$(tmux -V 2>/dev/null || true); the-loop needs tmux 3.2 or newer and git" >&2
	exit 1
fi
