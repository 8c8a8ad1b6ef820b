# SPDX-License-Identifier: Apache-2.0
# All verbs start here. What takes more than a line is in tools/.

.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/bash
PYTHON := .venv/bin/python
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
# WERROR=1 makes warnings errors in build folders that are set up from then on (CI does).
MESON_SETUP := meson setup $(if $(WERROR),--werror)
# Not optimized and with few debug symbols: g++ takes minutes to optimize the sanitized JSON code.
# Three checks are left out because they find nothing more: AddressSanitizer reports a null pointer as well, and object sizes are not known without optimizing.
SANITIZED := -Db_sanitize=address,undefined -Dbuildtype=debug -Dcpp_args='-g1 -fno-sanitize=null,vptr,object-size' -Ddpdk=enabled -Dtests=true

.PHONY: help deps build build-tests build-asan test test-all lint format bench demo demo-linux prove docs package clean

help:  ## list these verbs
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

deps: .venv/.deps-build .venv/.deps-test .venv/.deps-lint .venv/.deps-docs .venv/.deps-bench .venv/.deps-prove .venv/.deps-package  ## install at once what the other verbs install when they need it: Debian packages (with sudo if not root), .venv

# Each verb installs what it needs, once: groups of tools/debian-packages.txt, and the Python packages that belong to each group.
.venv/.deps-build: requirements.lock requirements-serve.lock pyproject.toml tools/debian-packages.txt tools/install-dependencies
	tools/install-dependencies build run
	@touch $@

.venv/.deps-%: .venv/.deps-build requirements-dev.lock requirements-distributed.lock requirements-otg.lock requirements-devices.lock
	tools/install-dependencies $*
	@touch $@

.venv/.deps-lint: requirements-lint.lock

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

# The build folder has no tests until the first `make test`, so that building needs none of their libraries.
build/.has-tests: | build/build.ninja .venv/.deps-test
	meson setup --reconfigure build -Dtests=true
	@touch $@

build-asan: .venv/.deps-test build-asan/build.ninja
	@ninja -C build-asan cpp-tests

# A debug build keeps the assertions. Only the C++ tests are built in it, not the programs.
# A build folder that an older Makefile made has other options: it is set up again.
build-asan/build.ninja: Makefile | .venv/.deps-test
	$(MESON_SETUP) $(if $(wildcard $@),--reconfigure) build-asan $(SANITIZED)
	@touch $@

# Nothing is compiled in it. It tells clang-tidy how each file is compiled, also those that other build folders join.
build-lint/build.ninja: Makefile | .venv/.deps-lint
	meson setup $(if $(wildcard $@),--reconfigure) build-lint -Djoined=false -Dtests=true
	@touch $@

test: build-tests  ## run the tests, C++ and Python, except those that take several seconds each
	@$(PYTHON) tools/run_tests.py

test-all: build-tests build-asan  ## run also the longer tests, and the C++ tests under sanitizers: half an hour in all; CI runs this
	@ninja -C build cpp-benches
	@$(PYTHON) tools/run_tests.py --all

lint: .venv/.deps-lint .venv/.deps-docs build-lint/build.ninja  ## check format, types, known mistakes, spelling, licences, the site of docs/; `tools/lint NAME` runs one
	@tools/lint

format: .venv/.deps-lint  ## format C++ and Python
	@tools/format

bench: build .venv/.deps-bench  ## measure the tester itself; results go to bench/results/, and a table of them ends it
	@ninja -C build cpp-benches
	@tools/bench

demo: build  ## show what the choice of test addresses does to a result: two minutes on the reference router (any user)
	.venv/bin/evenhand demo

demo-linux: build  ## measure the kernel's own router in a network namespace (with sudo if not root)
	$(AS_ROOT) .venv/bin/evenhand demo --dut linux

prove: build-tests build-asan .venv/.deps-prove  ## run what takes too long for `make test-all`: whole demos, 10^9 draws, 10^7 fuzzed frames, a router with known limits, Figure 7, l3fwd, breaks on purpose; two hours
	@ninja -C build cpp-benches
	@tools/prove

docs: .venv/.deps-docs  ## write the generated pages of docs/reference/, then all pages as a site with search: build-site/html/index.html
	@tools/generate-docs
	@$(PYTHON) tools/build_site.py

package: .venv/.deps-package  ## build Debian packages for this release of Debian, and a wheel: dist/
	@tools/package

clean:  ## remove what these verbs made in this folder; Debian packages stay installed
	rm -rf build build-asan build-lint build-package build-site dist .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
