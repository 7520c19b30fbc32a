#!/bin/sh
# Makes sure that there is a Chromium for the tests of the web terminal: installs one with
# apt-get where it may. Without one, and without a way to get one, it says so and succeeds:
# those tests are skipped then, with that reason.
set -eu

for name in chromium-headless-shell chromium chromium-browser google-chrome; do
	if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	echo "no Chromium here: the browser tests of the web terminal are skipped; install the package chromium to run them" >&2
	exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
if ! apt-get update -q >"$log" 2>&1 </dev/null; then
	cat "$log" >&2
	echo "the packages of this system cannot be reached, so there is no Chromium: the browser tests of the web terminal are skipped" >&2
	exit 0
fi
# The headless one is a fourth of the other; not every release has it.
for name in chromium-headless-shell chromium; do
	echo "installing $name" >&2
	if apt-get install -y -q --no-install-recommends "$name" fonts-dejavu-core >"$log" 2>&1 </dev/null; then exit 0; fi
done
cat "$log" >&2
echo "installing Chromium failed; install the package chromium by hand and try again" >&2
exit 1
