#!/bin/sh
# Builds other versions of tmux than the system's, to test with, and prints the program of
# each, a line each:
#	hack/build-tmux.sh [VERSION...]
# They are built once, from the sources that Debian keeps, below ~/.cache/the-loop/tmux.
set -eu

# The versions, and the SHA-256 of their sources.
known='3.5a 16216bd0877170dfcc64157085ba9013610b12b082548c7c9542cc0103198951
3.6a c7cf7247f767e6ccbc3e1243cd8f89b263a0a02efd08bfaca849fc7a071979ee'

[ $# -gt 0 ] || set -- 3.5a 3.6a
cache=${XDG_CACHE_HOME:-$HOME/.cache}/the-loop/tmux

# tools installs what building takes, where it may.
tools() {
	[ -e "$cache/tools" ] && return
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		echo "building tmux takes a C compiler, make, bison, autoconf, automake, pkg-config, curl, and the headers of libevent and ncurses: install them, then: mkdir -p '$cache' && touch '$cache/tools'" >&2
		exit 1
	fi
	log=$cache/tools.log
	if ! { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
		gcc libc6-dev make bison autoconf automake pkg-config curl ca-certificates libevent-dev libncurses-dev; } >"$log" 2>&1 </dev/null; then
		cat "$log" >&2
		exit 1
	fi
	touch "$cache/tools"
}

mkdir -p "$cache"
for version in "$@"; do
	program=$cache/$version/tmux
	if [ ! -x "$program" ]; then
		sum=$(echo "$known" | sed -n "s/^$version //p")
		if [ -z "$sum" ]; then
			echo "tmux $version is none of those that are known here: $(echo "$known" | cut -d' ' -f1 | tr '\n' ' ')" >&2
			exit 2
		fi
		tools
		echo "building tmux $version into $cache/$version (once)" >&2
		work=$(mktemp -d "$cache/build-XXXXXX")
		trap 'rm -rf "$work"' EXIT
		curl -fsSL -o "$work/source.tar.gz" "http://deb.debian.org/debian/pool/main/t/tmux/tmux_$version.orig.tar.gz"
		echo "$sum  $work/source.tar.gz" | sha256sum -c - >/dev/null
		mkdir "$work/source" "$work/out"
		tar -xzf "$work/source.tar.gz" -C "$work/source" --strip-components 1
		if ! (cd "$work/source" && { [ -x configure ] || sh autogen.sh; } && ./configure && make -j2) >"$work/log" 2>&1; then
			tail -40 "$work/log" >&2
			exit 1
		fi
		cp "$work/source/tmux" "$work/out/tmux"
		rm -rf "${cache:?}/$version"
		mv "$work/out" "$cache/$version"
		rm -rf "$work"
	fi
	echo "$program"
done
