SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := pcap-analyzer/native
SAMPLE := captures/a-paho-qos1.pcapng

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-10s %s\n", $$1, $$2}'

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)

.PHONY: cargo
cargo:
	@oldest=$$(sed -n 's/^rust-version = "\(.*\)"/\1/p' $(NATIVE)/Cargo.toml); \
	found=$$( (rustc --version || true) 2>/dev/null | cut -d ' ' -f 2); \
	if ! command -v cargo >/dev/null || [ "$$(printf '%s\n' "$$oldest" "$$found" | sort -V | head -n 1)" != "$$oldest" ]; then \
	  echo "cargo is missing or too old (Rust $${found:-none}): install Rust $$oldest or newer (rustup.rs, or apt-get install rustup)" >&2; exit 5; fi

.PHONY: demo
demo: $(BIN)/python cargo ## Install into .venv and summarise a sample capture
	$(BIN)/pip install --quiet --disable-pip-version-check .
	$(BIN)/pcapstat summarize $(SAMPLE)

# without MAKEFLAGS, here and below: make's jobserver does not reach cargo through pip, nor rustdoc, which would complain
.PHONY: install-test
install-test: $(BIN)/python cargo
	MAKEFLAGS= $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test,lint,docs]'

.PHONY: tshark
tshark:
	@if command -v tshark >/dev/null; then exit 0; fi; \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -qy tshark >/dev/null; \
	elif command -v apt-get >/dev/null && sudo -n true 2>/dev/null; then \
	  sudo apt-get update -q >/dev/null && sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy tshark >/dev/null; \
	else echo "tshark is missing and cannot be installed from here: install Wireshark's tshark 4.0 or newer" >&2; exit 5; fi

# tshark 4.4 and newer runs Lua for root only where a file of the system says so, and looks for no personal plugins; containers have no other user as a rule
.PHONY: lua-for-root
lua-for-root: tshark
	@if [ "$$(id -u)" != 0 ]; then exit 0; fi; \
	probe=$$(mktemp); trap 'rm -f "$$probe"' EXIT; echo 'print("runs")' > "$$probe"; \
	if tshark -r $(SAMPLE) -c 1 -X "lua_script:$$probe" 2>/dev/null | grep -q '^runs'; then exit 0; fi; \
	folder=$$(tshark -G folders 2>/dev/null | sed -n 's/^Global Lua Plugins:[[:space:]]*//p'); \
	if [ -z "$$folder" ]; then echo "tshark runs no Lua: install one that does" >&2; exit 5; fi; \
	mkdir -p "$$folder"; \
	printf '%s\n' 'run_user_scripts_when_superuser = true' 'package.path = Dir.personal_plugins_path() .. "/?.lua;" .. package.path' \
	  >> "$$folder/init.lua"; \
	echo "$$folder/init.lua lets tshark run Lua for root from now on"

.PHONY: test-native
test-native: cargo
	cd $(NATIVE) && MAKEFLAGS= cargo test --quiet --locked --workspace --exclude pcapstat-python

.PHONY: test
test: ## Install what tests need and run them all
	$(MAKE) --no-print-directory --jobs 3 install-test lua-for-root test-native
	$(BIN)/pytest --numprocesses logical --dist loadfile --no-loadscope-reorder

LUA = dissectors pcap-analyzer/src/pcapstat/engines/contents.lua
LUA_TOOLS := lua-check lua5.2 lua5.4

.PHONY: lua-tools
lua-tools:
	@if command -v luacheck >/dev/null && command -v luac5.2 >/dev/null && command -v luac5.4 >/dev/null; then exit 0; fi; \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -qy $(LUA_TOOLS) >/dev/null; \
	elif command -v apt-get >/dev/null && sudo -n true 2>/dev/null; then \
	  sudo apt-get update -q >/dev/null && sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy $(LUA_TOOLS) >/dev/null; \
	else echo "luacheck, luac5.2 or luac5.4 is missing and cannot be installed from here: install $(LUA_TOOLS)" >&2; exit 5; fi

.PHONY: lint-lua
lint-lua: lua-tools ## Check the Lua dissectors: luacheck, the syntax of Lua 5.2 and 5.4, and what 5.4 is strict about
	luacheck --quiet $(LUA)
	find -L $(LUA) -name '*.lua' -print0 | xargs -0 -n 1 luac5.2 -p
	find -L $(LUA) -name '*.lua' -print0 | xargs -0 -n 1 luac5.4 -p
	cd dissectors && lua5.4 ../pcap-analyzer/tests/dissectors/whole_numbers.lua

.PHONY: lint
lint: install-test lint-lua docs ## Check style, types, floors, Lua, documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest pcapstat._native --ignore-missing-stub
	$(BIN)/lint-imports --config setup.cfg
	cd $(NATIVE) && cargo fmt --all --check
	cd $(NATIVE) && cargo clippy --quiet --locked --workspace --all-targets -- -D warnings

.PHONY: reference
reference: install-test ## Write docs/reference from the code
	$(BIN)/python docs/generate.py

.PHONY: docs
docs: install-test ## Build the documentation as a site in build/site; a warning is an error
	$(BIN)/mkdocs build --quiet --strict

.PHONY: bench
bench: install-test ## Measure speed and memory: ratios to capinfos, tshark and nfstream, one worker and two, large datasets
	$(BIN)/python -m pip install --quiet "nfstream>=6.6"
	$(BIN)/python pcap-analyzer/benches/run.py
	$(BIN)/python pcap-analyzer/benches/archive.py

PROFILE := $(CURDIR)/build/profile
# of the LLVM that rustc is built on, or of one shortly before it: rustup component add llvm-tools
LLVM_PROFDATA ?= $(or $(wildcard $(shell rustc --print sysroot 2>/dev/null)/lib/rustlib/*/bin/llvm-profdata),llvm-profdata)
WHEEL = $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps .

.PHONY: wheel
wheel: install-test ## Build a wheel in dist/, optimised with a profile of what it does with captures
	@command -v $(LLVM_PROFDATA) >/dev/null || { echo "llvm-profdata is missing: rustup component add llvm-tools, or make wheel LLVM_PROFDATA=…" >&2; exit 5; }
	rm -rf $(PROFILE)
	RUSTFLAGS=-Cprofile-generate=$(PROFILE)/raw $(WHEEL) --wheel-dir $(PROFILE)
	$(BIN)/python -m zipfile -e $(PROFILE)/*.whl $(PROFILE)/site
	for kind in coap mqtt; do $(BIN)/python pcap-analyzer/benches/generate.py $(PROFILE)/$$kind.pcap $$kind 300000 1000; done
	for capture in captures/*.pcapng $(PROFILE)/*.pcap; do for command in summarize messages exchanges; do \
	  PYTHONPATH=$(PROFILE)/site $(BIN)/python -m pcapstat $$command --engine native --format ndjson $$capture >/dev/null; done; done
	$(LLVM_PROFDATA) merge -o $(PROFILE)/profdata $(PROFILE)/raw
	RUSTFLAGS=-Cprofile-use=$(PROFILE)/profdata $(WHEEL) --wheel-dir dist

FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table --cfg fuzzing
FUZZ_SECONDS ?= 30
FUZZ_HOST = $(shell rustc -vV | sed -n 's/^host: //p')

.PHONY: fuzz
fuzz: cargo ## Fuzz the capture formats and every decoder, FUZZ_SECONDS each
	cd $(NATIVE)/fuzz && RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --quiet --release --locked --target $(FUZZ_HOST)
	mkdir -p $(NATIVE)/fuzz/artifacts/capture $(NATIVE)/fuzz/artifacts/protocol
	cp captures/a-*.pcapng $(NATIVE)/fuzz/artifacts/capture/
	cd $(NATIVE)/fuzz && for name in capture protocol; do \
	  mkdir -p corpus/$$name && $${CARGO_TARGET_DIR:-target}/$(FUZZ_HOST)/release/$$name -artifact_prefix=artifacts/ -verbosity=0 \
	    -max_total_time=$(FUZZ_SECONDS) -max_len=8000 artifacts/$$name corpus/$$name; done

.PHONY: record
record: ## Record the captures again (root, network namespaces): make record SCENARIO=a-paho-qos1
	$(PYTHON) captures/record/record.py $(SCENARIO)

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(VENV) build dist $(NATIVE)/target pcap-analyzer/src/*.egg-info pcap-analyzer/src/pcapstat/*.so
