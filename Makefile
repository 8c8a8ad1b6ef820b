# SPDX-License-Identifier: Apache-2.0
# The door to everything. What a verb does in more than a line stands in tools/.

.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/bash
PYTHON := .venv/bin/python
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
# WERROR=1 makes warnings errors in build folders that are set up from then on (CI does).
MESON_SETUP := meson setup $(if $(WERROR),--werror)
# Not optimized and with few debug symbols: g++ takes minutes to optimize the sanitized JSON code.
# Left out is what tells nothing more: a null pointer ends in AddressSanitizer all the same, and without optimizing no object size is known.
SANITIZED := -Db_sanitize=address,undefined -Dbuildtype=debug -Dcpp_args='-g1 -fno-sanitize=null,vptr,object-size' -Ddpdk=enabled

.PHONY: help deps build build-asan test lint format bench demo demo-linux prove docs clean

help:  ## list these verbs
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

deps: .venv/.deps-stamp  ## install Debian packages (with sudo if not root) and fill .venv from requirements.lock

.venv/.deps-stamp: requirements.lock pyproject.toml tools/debian-packages.txt tools/install-dependencies
	tools/install-dependencies
	@touch $@

build: deps build/build.ninja  ## build the engine: build/engine/evenhand-engine
	@ninja -C build

build/build.ninja: | deps
	$(MESON_SETUP) build

build-asan: deps build-asan/build.ninja
	@ninja -C build-asan

# A debug build keeps the assertions. The engine itself is not in it, the C++ tests are.
# A folder of an older Makefile has other options: it is set up anew.
build-asan/build.ninja: Makefile | deps
	$(MESON_SETUP) $(if $(wildcard $@),--reconfigure) build-asan $(SANITIZED)
	@touch $@

# Nothing is compiled in it: clang-tidy reads there how each file is compiled, also those that are joined elsewhere.
build-lint/build.ninja: | deps
	meson setup build-lint -Djoined_tests=false

test: build build-asan  ## run all tests: C++, C++ under sanitizers, Python
	@$(PYTHON) tools/run_tests.py

lint: deps build-lint/build.ninja  ## check format, types, known mistakes, spelling, licences; `tools/lint NAME` runs one
	@tools/lint

format: deps  ## format C++ and Python
	@tools/format

bench: build  ## measure the tester itself; results go to bench/results/
	@tools/bench

demo: build  ## two minutes on the reference router: what the choice of test addresses does to a result (any user)
	.venv/bin/evenhand demo

demo-linux: build  ## measure the kernel's own router in a network namespace (with sudo if not root)
	$(AS_ROOT) .venv/bin/evenhand demo --dut linux

prove: build build-asan  ## what takes too long for `make test`: whole demos, 10^9 draws, 10^7 fuzzed frames, known truth; half an hour
	@tools/prove

docs: deps  ## write the generated pages of docs/reference/
	@tools/generate-docs

clean:  ## remove what these verbs made here; Debian packages stay
	rm -rf build build-asan build-lint .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
