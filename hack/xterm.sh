#!/bin/sh
# Fetches the terminal emulator of the web terminal's page, xterm.js, as
# hack/xterm/package-lock.json pins it (npm checks its SHA-512), unchanged and with its
# licence, into internal/webterminal/assets/xterm. Run by `make xterm` after a change of the
# version; a test compares what is there with SHA256SUMS.
set -eu
cd "$(dirname "$0")/.."

to=$PWD/internal/webterminal/assets/xterm
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp hack/xterm/package.json hack/xterm/package-lock.json "$tmp"
(cd "$tmp" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)

from=$tmp/node_modules/@xterm/xterm
mkdir -p "$to"
install -m 644 "$from/lib/xterm.js" "$from/css/xterm.css" "$from/LICENSE" "$to"
cd "$to"
sha256sum LICENSE xterm.css xterm.js >SHA256SUMS
