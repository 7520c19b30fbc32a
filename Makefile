# What can be done here: `make help`. Nothing needs to be installed by hand but Go
# and make: the tools are pinned in hack/tools, the control plane in
# hack/controlplane, and tmux comes from the system's package manager.

# The version is stamped from git where there is git.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# ARGS go to `the-loop up` and `the-loop down`.
ARGS ?=
# PKGS are the packages to test, TEST_FLAGS further flags of go test.
PKGS ?= ./...
TEST_FLAGS ?=
FUZZTIME ?= 10s
BENCH ?= .
BENCHTIME ?= 1s
# OUT is where generated files go; `make verify` sets it.
OUT ?= .

# The version above replaces Go's own stamp, which fails in some checkouts.
override GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)
export GOFLAGS

TOOL := go tool -modfile="$(CURDIR)/hack/tools/go.mod"
CONTROL_PLANE := go run -C hack/controlplane .
GO_BUILD = go build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/

# Everything in cmd is a program. These two must start anywhere, in milliseconds.
STATIC := $(patsubst %/,./%,$(sort $(dir $(wildcard cmd/loop-shim/*.go test/fakeharness/*.go))))
PROGRAMS := $(filter-out $(STATIC),$(patsubst %/,./%,$(sort $(dir $(wildcard cmd/*/*.go)))))

# $(call packages,PREFIX) sets $$pkgs to the packages among PKGS that have a test
# function of that prefix, or fails.
packages = list=$$(go list -f '{{.ImportPath}} {{.Dir}}' $(PKGS)) || exit 1; \
	pkgs=$$(echo "$$list" | while read -r pkg dir; do \
		if grep -qsE '^func $(1)' "$$dir"/*_test.go; then echo "$$pkg"; fi; done)

# A command line of another program, outside the package that knows its traps.
COMMAND_LINE := exec\.(Command|CommandContext)\(([^"]*, *)?"([^"]*/)?(tmux|git|sh|bash)"

.DEFAULT_GOAL := help
.PHONY: help tmux chromium xterm controlplane generate manifests docs fmt verify lint test matrix chaos fuzz bench build run down picture clean

help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

tmux: ## Install tmux and git when they are missing.
	@hack/install-tmux.sh

chromium: ## Install Chromium, for the tests of the web terminal, when it is missing.
	@hack/install-chromium.sh

xterm: ## Fetch the web terminal's xterm.js as hack/xterm pins it.
	@hack/xterm.sh

controlplane: ## Build kube-apiserver, etcd and kubectl (once) and print their directory.
	@$(CONTROL_PLANE)

generate: ## Generate Go code.
	@$(TOOL) controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/... \
		output:object:dir="$(OUT)/api/v1alpha1"

manifests: generate ## Generate the CRDs and the roles of each program.
	@$(TOOL) controller-gen crd paths=./api/... output:crd:artifacts:config="$(OUT)/config/crd/bases"
ifneq ($(wildcard controllers/hub/*.go),)
	@$(TOOL) controller-gen rbac:roleName=theloop-controller,fileName=controller_role.yaml \
		paths=./controllers/hub/... output:rbac:artifacts:config="$(OUT)/config/rbac"
endif
ifneq ($(wildcard controllers/agent/*.go),)
	@$(TOOL) controller-gen rbac:roleName=theloop-agent,fileName=agent_role.yaml \
		paths=./controllers/agent/... output:rbac:artifacts:config="$(OUT)/config/rbac"
endif

docs: ## Generate docs/conformance.md from the names of the tests, docs/events.md from the catalogue, docs/text.md from the rules.
	@go run ./hack/conformance
	@go run ./hack/events
	@go run ./hack/text

fmt: ## Format the Go sources.
	@$(TOOL) golangci-lint fmt

verify: ## Check that generated files, formatting and go.mod files are up to date.
	@MAKE="$(MAKE)" hack/verify.sh

lint: ## Run golangci-lint and the floors of the house (.golangci.yml).
	@$(TOOL) golangci-lint run ./...
	@cd hack/controlplane && $(TOOL) golangci-lint run -c ../../.golangci.yml ./...
	@if grep -rnE --include='*.go' --exclude='*_test.go' '$(COMMAND_LINE)' $(wildcard api cmd controllers internal pkg) | \
		grep -vE '^internal/(tmux|workspace)/'; then \
		echo 'lint: tmux is run by internal/tmux only, git by internal/workspace only, a shell by nobody' >&2; exit 1; fi

# Tests find the control plane in $KUBEBUILDER_ASSETS, our programs in $THE_LOOP_BIN, and
# ttyd, where it can be had, in $THE_LOOP_TTYD.
# The two suites that take longest begin first, beside the others: most of them wait.
test: tmux chromium build ## Run all tests with the race detector against a real control plane.
	@assets=$$($(CONTROL_PLANE)) && ttyd=$$(hack/build-ttyd.sh) && \
	export KUBEBUILDER_ASSETS="$$assets" THE_LOOP_BIN="$(CURDIR)/bin" THE_LOOP_TTYD="$$ttyd" && \
	go test -C hack/controlplane -count=1 -timeout 30m ./... && \
	{ $(call packages,Test); } && \
	pkgs=$$(echo "$$pkgs" | awk '/\/test\/(e2e|realharness)$$/ { print; next } { rest = rest $$0 "\n" } END { printf "%s", rest }') && \
	go test -race -count=1 -timeout 30m -p 3 $(TEST_FLAGS) $$pkgs

# Every package that runs tmux, with the system's and with newer ones of its own.
matrix: tmux build ## Run the tests of what runs tmux with other versions of it too (hack/build-tmux.sh; they are built once).
	@others=$$(hack/build-tmux.sh) || exit 1; \
	TMUX_BINARIES="$$(command -v tmux):$$(echo "$$others" | paste -sd:)" $(MAKE) --no-print-directory test PKGS=./internal/tmux || exit 1; \
	for t in $$others; do \
		echo "== with $$($$t -V)"; \
		PATH="$$(dirname "$$t"):$$PATH" $(MAKE) --no-print-directory test PKGS="./internal/delivery ./internal/webterminal ./test/chaos ./test/e2e" || exit 1; \
	done

# The programs with fault points in them stay apart, in bin/chaos.
chaos: tmux build ## Kill and stall everything while messages are sent (ARGS="--seed 7 --messages 10000 --sessions 20 --duration 10m").
	@assets=$$($(CONTROL_PLANE)) && export KUBEBUILDER_ASSETS="$$assets" THE_LOOP_BIN="$(CURDIR)/bin" THE_LOOP_CHAOS_BIN="$(CURDIR)/bin/chaos" && \
	go test -v -count=1 -timeout 0 ./test/chaos -args $(ARGS)

fuzz: ## Run every fuzz test for FUZZTIME.
	@$(call packages,Fuzz); for pkg in $$pkgs; do \
		for name in $$(go test -list '^Fuzz' "$$pkg" | grep '^Fuzz'); do \
			echo "$$name in $$pkg"; \
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$pkg" || exit 1; \
		done; \
	done

bench: tmux build ## Run the benchmarks.
	@assets=$$($(CONTROL_PLANE)) && export KUBEBUILDER_ASSETS="$$assets" THE_LOOP_BIN="$(CURDIR)/bin" && \
	{ $(call packages,Benchmark); } && { [ -n "$$pkgs" ] || { echo 'no benchmarks in $(PKGS)'; exit; }; } && \
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem -timeout 30m $(TEST_FLAGS) $$pkgs

build: ## Build all programs into bin.
ifneq ($(PROGRAMS),)
	@$(GO_BUILD) $(PROGRAMS)
endif
ifneq ($(STATIC),)
	@CGO_ENABLED=0 $(GO_BUILD) $(STATIC)
endif

run: tmux build ## Build everything and run it here: `the-loop up`. Ctrl-C leaves the sessions running.
	@assets=$$($(CONTROL_PLANE)) && exec bin/the-loop up --control-plane-dir "$$assets" $(ARGS)

down: ## End what `make run` started, sessions included.
	@test -x bin/the-loop || $(MAKE) --no-print-directory build
	@exec bin/the-loop down $(ARGS)

picture: build ## Draw the README's picture anew, from the real thing.
	@hack/picture.sh

clean: ## Remove what was built in the checkout.
	@rm -rf bin coverage
