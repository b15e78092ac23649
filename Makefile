# KeyLoad. `make demo` shows it, `make test` is what every change must pass.
# Both need only Go and this checkout; Go fetches the modules by itself.

GO          := $(or $(shell command -v go 2>/dev/null),/usr/local/go/bin/go)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
BIN         := bin/keyload
SUMMARY     := $(CURDIR)/bin/test-long.txt

# The product and its tests are pure Go. (test-long turns CGO on where the race
# detector needs it.)
export CGO_ENABLED := 0

stage = @printf '\n==> %s\n' '$(1)'

.PHONY: demo demo-cluster test test-long bench golden build lint fmt gofmt vet staticcheck structure go

demo: build
	@$(BIN) demo

# The same job on three nodes, the leader of the busy shard killed on the way.
demo-cluster: build
	@$(BIN) demo --cluster

build: go
	@echo 'building $(BIN); the first time this takes about a minute'
	@$(GO) build -o $(BIN) ./cmd/keyload

# What CI runs: under ten minutes on two cores.
test: lint
	$(call stage,tests)
	@$(GO) test -timeout 9m ./...

# Everything else: many more seeds and trials, with an account of them, and the
# race detector.
test-long: lint
	$(call stage,long tests)
	@mkdir -p bin && rm -f $(SUMMARY)
	@KEYLOAD_LONG=1 KEYLOAD_SUMMARY=$(SUMMARY) $(GO) test -count=1 -timeout 90m ./...; code=$$?; \
	printf '\n==> what was tried\n'; sort $(SUMMARY); exit $$code
	$(call stage,race detector)
	@CGO_ENABLED=1 $(GO) test -race -count=1 -timeout 60m ./...

bench: build
	@$(BIN) bench

# Writes the golden files anew; read the diff before it is committed.
golden: go
	$(call stage,golden files)
	@KEYLOAD_REWRITE=1 $(GO) test -count=1 ./...
	@git --no-pager diff --stat

fmt: go
	@$(GO) fmt ./...

lint: gofmt vet staticcheck structure

gofmt: go
	$(call stage,gofmt)
	@unformatted=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) || exit 1; \
	if [ -n "$$unformatted" ]; then printf 'run "make fmt" for:\n%s\n' "$$unformatted"; exit 1; fi

vet: go
	$(call stage,go vet)
	@$(GO) vet ./...

# The first run compiles the tool, about a minute; later ones take seconds.
staticcheck: go
	$(call stage,staticcheck)
	@$(GO) run $(STATICCHECK) ./...

# Reads the source, which the test cache does not see: hence -count=1.
structure: go
	$(call stage,structure: layers determinism sizes documents)
	@$(GO) test -count=1 ./internal/lint

go:
	@$(GO) version >/dev/null 2>&1 || { echo 'Go is needed, 1.26 or later: https://go.dev/doc/install'; exit 1; }
