#!/bin/sh
# Checks that what is generated, formatted and tidied is up to date, without
# touching the tree: generated files are written to a temporary directory and
# compared, so that other uncommitted changes do not matter. Run by `make verify`.
set -eu
cd "$(dirname "$0")/.."

failed=0
complain() {
	echo "verify: $1" >&2
	failed=1
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

${MAKE:-make} --no-print-directory generate manifests OUT="$tmp/new"
(cd "$tmp/new" && find . -type f | sed 's,^\./,,' | sort) >"$tmp/list"
while read -r file; do
	if [ ! -e "$file" ]; then
		complain "$file is missing: run make generate manifests"
	elif ! diff -u "$file" "$tmp/new/$file"; then
		complain "$file is out of date: run make generate manifests"
	fi
done <"$tmp/list"
# Generated once, but no more.
for file in api/*/zz_generated*.go config/crd/bases/*; do
	[ ! -e "$file" ] || [ -e "$tmp/new/$file" ] || complain "$file is generated from nothing any more: remove it"
done

go run ./hack/conformance -check || complain "docs/conformance.md does not fit the tests"
go run ./hack/events -check || complain "docs/events.md does not fit the catalogue"
go run ./hack/text -check || complain "docs/text.md does not fit the rules"

go tool -modfile="$PWD/hack/tools/go.mod" golangci-lint fmt --diff || complain "some files are not formatted: run make fmt"

for module in . hack/tools hack/controlplane; do
	go mod tidy -C "$module" -diff || complain "$module/go.mod or go.sum is not tidy: run go mod tidy there"
done

exit "$failed"
