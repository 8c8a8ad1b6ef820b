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
SANITIZED := -Db_sanitize=address,undefined -Dbuildtype=debug -Dcpp_args='-g1 -fno-sanitize=null,vptr,object-size' -Ddpdk=enabled -Dtests=true

.PHONY: help deps build build-tests build-asan test test-all lint format bench demo demo-linux prove docs package clean

help:  ## list these verbs
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

deps: .venv/.deps-build .venv/.deps-test .venv/.deps-lint .venv/.deps-docs .venv/.deps-bench .venv/.deps-prove .venv/.deps-package  ## install now what the other verbs install when they need it: Debian packages (with sudo if not root), .venv

# Each verb installs what it needs, once: groups of tools/debian-packages.txt, and for them what .venv must have.
.venv/.deps-build: requirements.lock pyproject.toml tools/debian-packages.txt tools/install-dependencies
	tools/install-dependencies build run
	@touch $@

.venv/.deps-%: .venv/.deps-build requirements-dev.lock requirements-distributed.lock
	tools/install-dependencies $*
	@touch $@

.venv/.deps-prove: requirements-prove.lock

.venv/.deps-package: .venv/.deps-build
	tools/install-dependencies package
	@touch $@

.venv/.deps-docs: .venv/.deps-build requirements-docs.lock
	tools/install-dependencies docs
	@touch $@

build: .venv/.deps-build build/build.ninja  ## build engine and router: build/engine/evenhand-engine, build/router/evenhand-router
	@ninja -C build

build/build.ninja: | .venv/.deps-build
	$(MESON_SETUP) build

build-tests: build build/.has-tests
	@ninja -C build cpp-tests

# Until the first `make test` the folder knows of no tests, so that building needs none of their libraries.
build/.has-tests: | build/build.ninja .venv/.deps-test
	meson setup --reconfigure build -Dtests=true
	@touch $@

build-asan: .venv/.deps-test build-asan/build.ninja
	@ninja -C build-asan cpp-tests

# A debug build keeps the assertions. Only the C++ tests are built in it, not the programs.
# A folder of an older Makefile has other options: it is set up anew.
build-asan/build.ninja: Makefile | .venv/.deps-test
	$(MESON_SETUP) $(if $(wildcard $@),--reconfigure) build-asan $(SANITIZED)
	@touch $@

# Nothing is compiled in it: clang-tidy reads there how each file is compiled, also those that are joined elsewhere.
build-lint/build.ninja: Makefile | .venv/.deps-lint
	meson setup $(if $(wildcard $@),--reconfigure) build-lint -Djoined_tests=false -Dtests=true
	@touch $@

test: build-tests  ## run the tests: C++, Python
	@$(PYTHON) tools/run_tests.py

test-all: build-tests build-asan  ## the same, the C++ tests under sanitizers, and what takes longer: in all half an hour; CI runs this
	@$(PYTHON) tools/run_tests.py --all

lint: .venv/.deps-lint .venv/.deps-docs build-lint/build.ninja  ## check format, types, known mistakes, spelling, licences, the site of docs/; `tools/lint NAME` runs one
	@tools/lint

format: .venv/.deps-lint  ## format C++ and Python
	@tools/format

bench: build .venv/.deps-bench  ## measure the tester itself; results go to bench/results/
	@ninja -C build engine/bench/evenhand-bench-asker engine/bench/evenhand-bench-sender-parts
	@tools/bench

demo: build  ## two minutes on the reference router: what the choice of test addresses does to a result (any user)
	.venv/bin/evenhand demo

demo-linux: build  ## measure the kernel's own router in a network namespace (with sudo if not root)
	$(AS_ROOT) .venv/bin/evenhand demo --dut linux

prove: build-tests build-asan .venv/.deps-prove  ## what takes too long for `make test-all`: whole demos, 10^9 draws, 10^7 fuzzed frames, known truth, Figure 7, l3fwd, breaks on purpose; two hours
	@tools/prove

docs: .venv/.deps-docs  ## write the generated pages of docs/reference/, then all pages as a site with search: build-site/html/index.html
	@tools/generate-docs
	@$(PYTHON) tools/build_site.py

package: .venv/.deps-package  ## Debian packages for the Debian that this is, and a wheel: dist/
	@tools/package

clean:  ## remove what these verbs made here; Debian packages stay
	rm -rf build build-asan build-lint build-package build-site dist .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
