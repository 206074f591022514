# SPDX-License-Identifier: Apache-2.0
# The commands of the project; `make help` lists them. What they do stands in scripts/ and CMakePresets.json.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
TIDY ?= on
PYTHON_BIN := .venv/bin/python

# Progress as "[12/340 3.5s] what": how much is done and how long it has taken.
export NINJA_STATUS = [%f/%t %es] 

.PHONY: help setup configure build demo test test-versions test-node test-monitoring conformance cuda bench lint format wheel package clean distclean

help: ## list these commands
	@echo "flagosd, the device server for PyTorch. Commands:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile
	@echo "Variables: JOBS=$(JOBS) (parallel compilations), PYTHON (to make .venv from), TORCH_INDEX_URL (where to take"
	@echo "torch from), ONLY=\"release pytest ...\" (stages of make test)."

setup: ## install system packages (with sudo where not root) and .venv; a second run installs nothing
	@scripts/setup.sh

configure: setup
	@[ -f build/build.ninja ] || cmake --preset release

build: configure ## build everything and make .venv's Python use it
	@cmake --build --preset release --target product -- -j $(JOBS)
	@scripts/develop.sh

demo: build ## train and serve real models on device "flagos", with flagosctl ps while they run
	@$(PYTHON_BIN) examples/demo.py

test: build ## build and run every test: C++ plain and with sanitizers, Python, fuzzing for some seconds
	@JOBS=$(JOBS) scripts/test.sh $(ONLY)

test-versions: build cuda ## test this PyTorch's client with executors of the PyTorch that `make cuda` builds against
	@JOBS=$(JOBS) scripts/check_versions.sh
	@$(PYTHON_BIN) -m pytest tests/versions --quiet

test-monitoring: build ## test the Grafana board and the alerts of deploy/monitoring with a real Prometheus (fetched where it is missing)
	@tests/monitoring/run.sh --quiet

conformance: build ## run PyTorch's whole OpInfo database on the device against the CPU and print what share agrees
	@CONFORMANCE_STEP=1 CONFORMANCE_SAMPLES=30 $(PYTHON_BIN) -m pytest tests/conformance --numprocesses $(JOBS) --quiet

cuda: setup ## build the vendor cuda against PyTorch for CUDA (needs no GPU; fetches 0.5 GB) and pack dist/flagos-cuda.tar.gz
	@scripts/setup_cuda.sh
	@[ -f build/cuda/build.ninja ] || cmake --preset cuda
	@cmake --build --preset cuda -- -j $(JOBS)
	@scripts/bundle.sh build/cuda dist/flagos-cuda.tar.gz

bench: build ## measure speed and memory and print them as a table
	@cmake --build --preset release -- -j $(JOBS)
	@$(PYTHON_BIN) tests/bench/run.py

lint: configure ## check format, licence headers, clang-tidy, ruff and mypy
	@JOBS=$(JOBS) TIDY=$(TIDY) scripts/lint.sh

format: setup ## rewrite C++ and Python sources in the project's format
	@git ls-files -z --cached --others --exclude-standard '*.h' '*.cc' | xargs -0r clang-format-14 -i
	@$(PYTHON_BIN) -m ruff format --quiet && $(PYTHON_BIN) -m ruff check --quiet --select I --fix

wheel: setup ## build the wheel that `pip install .` installs, into dist/
	@$(PYTHON_BIN) -m build --wheel --no-isolation

package: build ## pack the service as a Debian package, dist/flagos_VERSION_ARCH.deb (with the vendor cuda where `make cuda` built it)
	@scripts/package.sh

test-node: package ## test the packaged service in a Debian that systemd-nspawn boots (as root)
	@root=$$(tests/node/root.sh); tests/node/package.sh dist/flagos_*.deb "$$root"; tests/node/run.sh dist/flagos_*.deb "$$root"

clean: ## remove what was built; .venv stays
	rm -rf build build-wheel dist python/flagos/native

distclean: clean ## remove .venv too
	rm -rf .venv
