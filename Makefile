# The two commands of a newcomer are `make test` and `make reproduce`; both create .venv first.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
ONE_THREAD := XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1" OMP_NUM_THREADS=1
JOBS ?= 2
FIRST_SEED ?= 4000

UV := build/uv/bin/uv

.PHONY: help test quick lint types unit golden registry verdicts coverage docs reproduce profile bench wheel lowest constraints browser-packages clean

help:
	@echo "make test       create .venv, install, run lint, types and tests"
	@echo "make quick      lint and the tests not marked slow, for between two edits"
	@echo "make coverage   how often 95 % intervals cover the truth, by simulation"
	@echo "make golden     every claim and command again: the same numbers to 1e-12? (10 minutes)"
	@echo "make registry   renew the registry of the claims' thresholds, src/attnlab/papers/registry.json"
	@echo "make verdicts   every claim at paper scale on fresh seeds (3 CPU-hours); writes docs/verdicts.json"
	@echo "make reproduce  create .venv, install, run the main job, write results/"
	@echo "make docs       the documentation as a site, build/docs/index.html, which needs no network"
	@echo "make profile    where the time of reproduce goes, sweep by sweep; writes build/profile.json"
	@echo "make bench      speed against PyTorch; writes build/bench.json"
	@echo "make wheel      source distribution and wheel in dist/, each installed and tried in a clean environment"
	@echo "make lowest     the tests with the lowest versions that pyproject.toml declares"
	@echo "make constraints  renew the exact versions of constraints.txt"
	@echo "make browser-packages  what the tests and the figures take from npm, as tests/package.json says"

.venv/installed: pyproject.toml setup.py constraints.txt src/attnlab/models/_native.cc
	$(PYTHON) -m venv .venv
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@

.venv/installed-bench: .venv/installed
	$(PIP) install -c constraints.txt -e '.[bench]'
	@touch $@

.venv/installed-docs: .venv/installed
	$(PIP) install -c constraints.txt -e '.[docs]'
	@touch $@

test: lint types unit

quick: lint
	$(ONE_THREAD) $(BIN)/pytest -q -n $(JOBS) --dist worksteal -m 'not coverage and not slow' tests

lint: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache

types: .venv/installed
	$(BIN)/pyright

unit: .venv/installed
	$(ONE_THREAD) $(BIN)/pytest -n $(JOBS) --dist worksteal

golden: .venv/installed
	$(ONE_THREAD) $(BIN)/python tools/golden.py

registry: .venv/installed
	$(BIN)/python tools/registry.py --store

# Resumable: what is finished is not computed again.
verdicts: .venv/installed
	-$(BIN)/attnlab reproduce --scale paper --first-seed $(FIRST_SEED) --corpus rotten-tomatoes --out build/verdicts
	$(BIN)/python tools/verdicts.py build/verdicts

coverage: .venv/installed
	$(ONE_THREAD) $(BIN)/pytest -q -m coverage tests/stats/test_coverage.py

# A warning of Sphinx, such as a broken link, is an error.
docs: .venv/installed-docs
	$(ONE_THREAD) $(BIN)/python tools/docs.py

reproduce: .venv/installed
	$(BIN)/attnlab reproduce --corpus rotten-tomatoes --out results

profile: .venv/installed
	$(BIN)/python tools/profile.py

bench: .venv/installed-bench
	$(ONE_THREAD) $(BIN)/python benchmarks/run.py

# PYTHONS="python3.11 python3.13" JAX="oldest newest" tries every pair.
wheel:
	$(PYTHON) tools/wheel.py --python $(or $(PYTHONS),$(PYTHON)) --jax $(or $(JAX),newest)

$(UV):
	$(PYTHON) -m venv build/uv
	build/uv/bin/python -m pip --disable-pip-version-check -q install 'uv>=0.9'

# Old versions of other packages use what newer ones call deprecated: such warnings are no errors here.
# Programs are optimised here as they are for users; in `make test` they are not (tests/conftest.py).
lowest: $(UV)
	$(UV) venv -q --clear --python $(PYTHON) build/lowest
	$(UV) pip install -q --python build/lowest --resolution lowest-direct -e '.[dev]'
	$(ONE_THREAD) JAX_DISABLE_MOST_OPTIMIZATIONS=false build/lowest/bin/pytest -n $(JOBS) --dist worksteal -W ignore::DeprecationWarning

# One resolution for all versions of Python, with markers where they differ.
constraints: $(UV)
	$(UV) pip compile -q --universal --python-version 3.11 --upgrade --extra all --extra dev --extra docs --no-annotate \
		--custom-compile-command "make constraints" --output-file constraints.txt pyproject.toml

# axe-core, which tests of the pages use where it is there; the script of the figures is copied to where it is read.
CARTESIAN := build/browser/node_modules/plotly.js-cartesian-dist-min
browser-packages:
	mkdir -p build/browser && cp tests/package.json build/browser/
	npm install --prefix build/browser --no-save --no-package-lock --no-audit --no-fund
	cp $(CARTESIAN)/plotly-cartesian.min.js src/attnlab/report/templates/
	cp $(CARTESIAN)/LICENSE src/attnlab/report/templates/plotly.LICENSE

clean:
	rm -rf .venv build
