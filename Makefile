# The targets of this project. People and CI use the same ones; `make help` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# The steps of `make test` are in the order in which one wants to hear of a fault.
.NOTPARALLEL:

# In CI a lock file that does not fit the manifests is a fault; at home cargo may bring it up to date.
LOCKED := $(if $(CI),--locked)
CARGO_FLAGS := --workspace --all-features $(LOCKED)

# Packages are installed by root or through sudo; the lists of a fresh machine are empty.
APT := $(if $(filter 0,$(shell id -u)),,sudo) DEBIAN_FRONTEND=noninteractive apt-get -q

# nextest runs each test in a process of its own and stops one that hangs; cargo's own runner does where it is absent.
HAS_NEXTEST = $(shell cargo nextest --version 2>/dev/null)
RUN_TESTS = $(if $(HAS_NEXTEST),cargo nextest run --config-file tests/nextest.toml,cargo test --no-fail-fast)

.PHONY: help setup build test fmt fmt-check lint features unit doctest house crash sim openapi fuzz sdk sdk-docs web web-build package doc example bench bench-log bench-server bench-state bench-cluster bench-peers bench-sdk bench-web check-peers clean cluster

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## Install rustfmt, clippy, a C++ compiler (for the fuzzer), Python (for the OpenAPI check), Node and Chromium (for the SDK and the dashboard) where they are missing
	@cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
	@command -v c++ >/dev/null || { $(APT) update && $(APT) install -y g++; }
	@python3 -c 'import ensurepip, venv' 2>/dev/null || { $(APT) update && $(APT) install -y python3 python3-venv; }
	@command -v curl >/dev/null || { $(APT) update && $(APT) install -y curl; }
	@command -v npm >/dev/null || { $(APT) update && $(APT) install -y nodejs npm; }
	@command -v chromium >/dev/null || { $(APT) update && $(APT) install -y --no-install-recommends chromium; }

build: ## Build everything with optimisation
	cargo build --release $(CARGO_FLAGS)

test: setup fmt-check lint features doc doctest unit openapi fuzz sdk web ## Check everything that CI checks

fmt: ## Format the code
	cargo fmt --all

fmt-check: ## Check that the code is formatted
	cargo fmt --all --check

lint: ## Run clippy on everything, with warnings as errors
	cargo clippy $(CARGO_FLAGS) --all-targets -- -D warnings

features: ## Check that each store builds without the others, and the server without optional features
	cargo check $(LOCKED) -p prombus-store --no-default-features --features memory
	cargo check $(LOCKED) -p prombus-log --no-default-features
	cargo check $(LOCKED) -p prombus-cli --tests

unit: ## Run all tests but those in the documentation; in CI with 50 rounds of faults on a cluster, CLUSTER_ROUNDS=500 for more
	$(if $(or $(CLUSTER_ROUNDS),$(CI)),PROMBUS_CLUSTER_ROUNDS=$(or $(CLUSTER_ROUNDS),50)) $(RUN_TESTS) $(CARGO_FLAGS) --tests

doctest: ## Run the examples in the documentation
	cargo test $(CARGO_FLAGS) --doc

house: ## Check the house rules alone: arrows between crates, file lengths, leftovers
	$(RUN_TESTS) $(LOCKED) -p prombus-tests --test house

crash: ## Run the crash and kill tests alone; SEEDS=5000 runs more seeds, SEED=17 just that one
	$(if $(SEEDS),PROMBUS_SEEDS=$(SEEDS)) $(if $(SEED),PROMBUS_SEED=$(SEED)) $(RUN_TESTS) $(CARGO_FLAGS) --tests -- crash kill

sim: ## Run the simulation of the whole bus alone; SEEDS=20000 runs more seeds, SEED=17 just that one
	$(if $(SEEDS),PROMBUS_SEEDS=$(SEEDS)) $(if $(SEED),PROMBUS_SEED=$(SEED)) $(RUN_TESTS) $(LOCKED) -p prombus-sim --tests

openapi: ## Send requests that are generated from the OpenAPI document to a server; EXAMPLES=500 for more
	$(if $(PROMBUS_BIN),,cargo build --profile test $(CARGO_FLAGS) --bin prombus)
	PROMBUS_BIN="$(or $(PROMBUS_BIN),$(CURDIR)/target/debug/prombus)" $(if $(EXAMPLES),EXAMPLES=$(EXAMPLES)) tests/openapi/run.sh

# libFuzzer without a nightly compiler: these are the flags that count which code an input reaches.
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Ccodegen-units=1 -Cdebug-assertions
# Naming the target keeps the flags away from build scripts.
FUZZ_TARGET = $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_SECONDS := $(or $(SECONDS_EACH),10)

fuzz: ## Fuzz frames, queries and bodies for a moment each; SECONDS_EACH=600 for longer
	RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --release $(LOCKED) -p prombus-fuzz --target-dir target/fuzz --target $(FUZZ_TARGET)
	for target in frames queries; do \
		mkdir -p target/fuzz/corpus/$$target; \
		target/fuzz/$(FUZZ_TARGET)/release/fuzz-$$target -max_total_time=$(FUZZ_SECONDS) -timeout=5 -max_len=4096 -verbosity=0 \
			-artifact_prefix=target/fuzz/ target/fuzz/corpus/$$target fuzz/corpus/$$target; \
	done

# npm installs only where the lock file has changed since, and runs no scripts of packages.
SDK := sdk/typescript
SDK_INSTALL = cd $(SDK) && if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then npm ci --ignore-scripts --no-progress; fi

sdk: ## Type-check and test the TypeScript SDK against the server; SDK_EVENTS=1000000 and SDK_WAITING=2000000 run more
	$(if $(PROMBUS_BIN),,cargo build --profile test $(CARGO_FLAGS) --bin prombus)
	$(SDK_INSTALL)
	cd $(SDK) && PROMBUS_BIN="$(or $(PROMBUS_BIN),$(CURDIR)/target/debug/prombus)" npm test --silent

sdk-docs: ## Write docs/sdk.md, the reference of the SDK, anew from its sources
	$(SDK_INSTALL)
	cd $(SDK) && npm run --silent docs

# The compiled page is checked in, so that building the server needs no Node.
WEB_INSTALL = cd web && if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then npm ci --ignore-scripts --no-progress; fi
WEB_BIN = $(or $(PROMBUS_BIN),$(CURDIR)/target/debug/prombus)

web: ## Compile the dashboard, compare it with what is checked in, and test it in Chromium; WEB_TOPICS=10000 scrolls more
	$(if $(PROMBUS_BIN),,cargo build --profile test $(CARGO_FLAGS) --bin prombus)
	$(WEB_INSTALL)
	cd web && PROMBUS_BIN="$(WEB_BIN)" npm test --silent

web-build: ## Compile the dashboard to web/dist, which is checked in
	$(WEB_INSTALL)
	cd web && npm run --silent build

package: ## Package every crate as it would be published, and build each from its package
	cargo package $(LOCKED) --workspace --exclude prombus-bench --exclude prombus-fuzz --exclude prombus-sim --exclude prombus-tests

doc: ## Build the documentation, with warnings as errors
	RUSTDOCFLAGS="-D warnings" cargo doc $(CARGO_FLAGS) --no-deps

example: ## Run the example: heartbeats, a handler that fails once, the retry, the cursor
	cargo run $(LOCKED) -p prombus --example heartbeats

cluster: ## Start three NATS servers and a node on loopback and print their URLs; NODES=3 starts more nodes
	$(if $(PROMBUS_BIN),,cargo build --release $(LOCKED) -p prombus-cli)
	deploy/cluster.sh

bench: ## Measure everything there is and print it as tables
	cargo run --release $(LOCKED) -p prombus-bench

bench-log: ## Measure the log alone, beside a plain loop that writes the same bytes
	cargo run --release $(LOCKED) -p prombus-bench -- log

bench-server: ## Measure the server under load: idle and busy connections, export, latency
	cargo run --release $(LOCKED) -p prombus-bench -- server

bench-state: ## Measure ack-and-publish transactions, tables in SQLite, rebuilding from snapshots, and reading keys over HTTP
	cargo run --release $(LOCKED) -p prombus-bench -- state

bench-cluster: ## Measure nodes on NATS JetStream and MongoDB beside one message or insert for each event; servers come from PyPI
	cargo run --release $(LOCKED) -p prombus-bench -- cluster

# Outside the workspace, so that nothing else builds the clients of NATS and Redis; what both build is shared.
PEERS_FLAGS := $(LOCKED) --manifest-path bench/peers/Cargo.toml --target-dir target

bench-peers: ## Measure the server beside NATS JetStream and Redis Streams, which are installed where missing; ROWS=a,d for some
	cargo run --release $(PEERS_FLAGS) -- --json target/peers.json $(if $(ROWS),--rows $(ROWS),--svg docs/peers.svg)

check-peers: ## Check and test the bench beside NATS and Redis, which is a workspace of its own
	cargo fmt --manifest-path bench/peers/Cargo.toml --check
	cargo clippy $(PEERS_FLAGS) --all-targets -- -D warnings
	cargo test $(PEERS_FLAGS)

bench-sdk: ## Measure the TypeScript SDK beside the JavaScript clients of NATS JetStream and Redis Streams; ROUNDS=1 is quicker
	$(if $(PROMBUS_BIN),,cargo build --release $(LOCKED) -p prombus-cli)
	$(SDK_INSTALL)
	cd $(SDK) && PROMBUS_BIN="$(or $(PROMBUS_BIN),$(CURDIR)/target/release/prombus)" PEERS="$(CURDIR)/target/release/peers" npm run --silent bench

bench-web: ## Print bytes, requests and times of a first visit of the dashboard
	$(if $(PROMBUS_BIN),,cargo build --release $(LOCKED) -p prombus-cli)
	$(WEB_INSTALL)
	cd web && PROMBUS_BIN="$(or $(PROMBUS_BIN),$(CURDIR)/target/release/prombus)" npm run --silent bench

clean: ## Remove what was built; data stays
	cargo clean
