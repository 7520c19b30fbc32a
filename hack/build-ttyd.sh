#!/bin/sh
# Prints a ttyd to test the web terminal's provider ttyd with: the one on PATH, else one that
# it builds once from the sources that Debian keeps, below ~/.cache/the-loop/ttyd. Where it
# cannot be had it says why and prints nothing: the tests skip the real one then.
set -eu

version=1.7.7
sum=48eba3f76af237f4c09cceb5ddbe0f845832557819f7e5c60c88285f8822af88

if command -v ttyd 2>/dev/null; then exit 0; fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/the-loop/ttyd
program=$cache/$version/ttyd
# The program needs the libraries of the machine that it was built on.
if [ -x "$program" ] && "$program" --version >/dev/null 2>&1; then
	echo "$program"
	exit 0
fi

skip() {
	echo "no ttyd here: $1; the web terminal is tested with a stand-in for it alone" >&2
	exit 0
}
[ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1 || skip "building it takes root and apt-get, or install the package ttyd"

mkdir -p "$cache"
work=$(mktemp -d "$cache/build-XXXXXX")
trap 'rm -rf "$work"' EXIT
if ! { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
	gcc libc6-dev make cmake pkg-config xxd curl ca-certificates xz-utils libwebsockets-dev libjson-c-dev libuv1-dev zlib1g-dev; } >"$work/log" 2>&1 </dev/null; then
	tail -5 "$work/log" >&2
	skip "the packages that building it takes cannot be installed"
fi
if ! curl -fsSL -o "$work/source.tar.xz" "http://deb.debian.org/debian/pool/main/t/ttyd/ttyd_$version.orig.tar.xz"; then
	skip "its sources cannot be reached"
fi
echo "$sum  $work/source.tar.xz" | sha256sum -c - >/dev/null
echo "building ttyd $version into $cache/$version (once)" >&2
mkdir "$work/source" "$work/out"
tar -xJf "$work/source.tar.xz" -C "$work/source" --strip-components 1
if ! (cd "$work/out" && cmake ../source -DCMAKE_BUILD_TYPE=Release && make -j2) >"$work/log" 2>&1; then
	tail -40 "$work/log" >&2
	exit 1
fi
mkdir -p "$cache/$version"
mv "$work/out/ttyd" "$program"
echo "$program"
