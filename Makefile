# Everything that is built or fetched goes to bin/ and .cache/, which git ignores.

SHELL := /bin/sh
.DEFAULT_GOAL := help

CACHE := $(CURDIR)/.cache
LINT_VERSION := v2.15.0
LINT := .cache/bin/golangci-lint-$(LINT_VERSION)

# Deno: that of DENO_PATH, else the pinned one, fetched as `tendril setup` does.
DENO_VERSION := $(shell sed -n 's/.*TestedVersion *= *"\(.*\)".*/\1/p' internal/sandbox/version.go)
MANAGED_DENO := .cache/tendril/bin/deno-$(DENO_VERSION)/deno
DENO := $(or $(DENO_PATH),$(CURDIR)/$(MANAGED_DENO))

# The race detector needs cgo and a C compiler.
RACE = $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && command -v $$(go env CC) >/dev/null 2>&1 && echo -race)

TESTFLAGS ?=
# A count of inputs: a time makes go test fail when it ends at an unlucky moment (golang.org/issue/75804).
FUZZTIME ?= 1000x
FUZZDIRS ?= internal
BENCH ?= .

.PHONY: help
help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The app's user interface. Without it bin/tendril still works, and says that it has none.
WEB := web/dist/index.html
WEB_MODULES := web/node_modules/.package-lock.json

.PHONY: setup
setup: build $(if $(DENO_PATH),,$(MANAGED_DENO)) ## fetch the Go modules and the pinned Deno (DENO_PATH names another), build

.PHONY: build
build: $(if $(shell command -v npm),$(WEB)) ## build bin/tendril, with its user interface where npm is there
	go mod download
	go build -o bin/tendril ./cmd/tendril


$(WEB_MODULES): web/package-lock.json
	npm ci --prefix web --ignore-scripts --no-audit --no-fund
	@touch $@

$(WEB): $(WEB_MODULES) $(shell find web/src web/public web/index.html web/*.json web/*.ts -type f)
	npm run build --prefix web

.PHONY: web
web: $(WEB) ## build the user interface into web/dist (needs Node 20.19 or later)

.PHONY: types
types: $(WEB_MODULES) ## generate api/openapi.json and the types of the user interface from the code
	go test ./internal/host -run OpenAPI -update
	npm run types --prefix web

.PHONY: test-web
test-web: $(WEB_MODULES) ## check the types of the user interface and run its unit tests
	npm run check --prefix web && npm test --prefix web

$(MANAGED_DENO): | build
	@command -v npm >/dev/null || { echo "npm is needed to fetch Deno; install it, or set DENO_PATH to a Deno $(DENO_VERSION)"; exit 1; }
	TENDRIL_HOME='$(CACHE)/tendril' bin/tendril setup --deno-only

.PHONY: run
run: setup ## do the main job with the demo model, in a throwaway folder; no key needed
	@DENO_PATH='$(DENO)' ./scripts/demo.sh

# The official clients of our protocols, in JavaScript.
CLIENTS := $(patsubst %/package-lock.json,%/node_modules/.package-lock.json,$(wildcard test/clients/*/package-lock.json))

test/clients/%/node_modules/.package-lock.json: test/clients/%/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix $(<D) --ignore-scripts --no-audit --no-fund && touch $@; \
	else echo "no npm: the tests with the client in $(<D) are skipped"; fi

.PHONY: test
test: setup $(CLIENTS) ## run all tests, with the race detector where there is a C compiler
	@[ -n "$(RACE)" ] || echo "no C compiler, or cgo is off: testing without the race detector"
	DENO_PATH='$(DENO)' go test $(RACE) -timeout 20m $(TESTFLAGS) $$(go list ./... | grep -v /internal/cli$$)
	DENO_PATH='$(DENO)' go test -timeout 20m $(TESTFLAGS) ./internal/cli

.PHONY: race
race: setup $(CLIENTS) ## run the tests of the command itself with the race detector, too: slow, they start hundreds of processes
	DENO_PATH='$(DENO)' go test $(RACE) -timeout 60m $(TESTFLAGS) ./internal/cli

.PHONY: clients
clients: ## install the official protocol clients that tests drive us with (needs npm)
	@for dir in test/clients/*/; do echo "npm ci in $$dir"; (cd "$$dir" && npm ci --no-audit --no-fund) || exit 1; done

.PHONY: cover
cover: setup ## run all tests and write the coverage to .cache/cover.html
	@mkdir -p .cache
	DENO_PATH='$(DENO)' go test -timeout 10m -coverpkg=./... -coverprofile='$(CACHE)/cover.out' ./...
	go tool cover -html='$(CACHE)/cover.out' -o '$(CACHE)/cover.html'
	@go tool cover -func='$(CACHE)/cover.out' | tail -1

.PHONY: fuzz
fuzz: setup ## run every fuzz test in FUZZDIRS (internal) for FUZZTIME (1000x: a thousand inputs each)
	@grep -rHo '^func Fuzz[A-Za-z0-9_]*' --include='*_test.go' $(FUZZDIRS) | sort | \
	while IFS=: read -r file func; do \
		name=$${func#func }; package=./$$(dirname "$$file"); \
		echo "fuzz $$package $$name"; \
		DENO_PATH='$(DENO)' go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x "$$package" || exit 1; \
	done

.PHONY: soak
soak: setup fuzz ## run the long tests (build tag soak), and fuzz
	DENO_PATH='$(DENO)' go test -tags soak -run Soak -count 1 -timeout 60m ./...

.PHONY: bench
bench: setup ## measure: start, turn, registration, execution, memory, the registry (BENCH=regexp)
	DENO_PATH='$(DENO)' go test -run '^$$' -bench '$(BENCH)' ./bench/... ./internal/capability

.PHONY: lint
lint: $(LINT) ## run golangci-lint
	GOLANGCI_LINT_CACHE='$(CACHE)/golangci-lint' $(LINT) run ./...

$(LINT):
	GOBIN='$(CACHE)/bin' go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv .cache/bin/golangci-lint $@

.PHONY: fmt
fmt: ## format the Go sources
	go fmt ./...

.PHONY: vet-others
vet-others: ## vet for macOS and Windows; lint vets for the system at hand
	for os in darwin windows; do echo "vet for $$os"; GOOS=$$os go vet ./... || exit 1; done

.PHONY: clean
clean: ## remove bin/ and .cache/
	rm -rf bin .cache
