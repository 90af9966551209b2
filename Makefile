# One set of verbs for people and for CI. Each sets up its own .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# bytecode is kept even where the environment forbids it: the tests start Python hundreds of times
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup test test-slow fuzz lint format demo annotate-demo docs bench peers clean
.DEFAULT_GOAL := help

help: ## show the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

setup: $(READY) ## install the project and its tools into .venv

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ordspan needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

PYTEST := $(BIN)/pytest -n auto --dist worksteal
test: $(READY) ## run all tests but the slow ones, doctests and the README's examples
	$(PYTEST) -m 'not slow' $(TESTS)

test-slow: $(READY) ## run the slow tests: browsers, kills, attacks, searches, compiling
	$(PYTEST) -m slow $(TESTS)

MINUTES ?= 10
fuzz: $(READY) ## attack files, models and estimators for MINUTES (10) with new seeds
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/fuzz $(BIN)/python tests/fuzz/run.py --minutes $(MINUTES) $(FUZZERS)

lint: $(READY) ## check style, types and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## rewrite the code in the project's style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo: $(READY) ## reproduce the paper on the data that is here
	$(BIN)/ordspan reproduce

annotate-demo: $(READY) ## grade 150 invented flats on a page that learns
	$(BIN)/ordspan annotate examples/data/flats.csv --grades poor,fair,good,great --id flat --drop notes \
	  --question 'How good is this offer?' --state $(VENV)/annotate-demo

docs: $(READY) ## build the documentation site; warnings are errors
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

bench: $(READY) ## measure every speed claim of the README, one table
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	$(BIN)/python benchmarks/bench_foundation.py --save docs/benchmarks-foundation.md
	$(BIN)/python benchmarks/bench_compile.py --save docs/benchmarks-compile.md
	$(BIN)/python benchmarks/bench_batch.py --save docs/benchmarks-batch.md
	$(BIN)/python benchmarks/bench_kernel.py --save docs/benchmarks-kernel.md
	$(BIN)/python benchmarks/bench_ranges.py --save docs/benchmarks-ranges.md
	$(BIN)/python benchmarks/bench_annotate.py --save docs/benchmarks-annotate.md
	$(BIN)/python benchmarks/bench_defaults.py --save docs/defaults.md
	$(BIN)/python benchmarks/bench_reproduce.py --save docs/benchmarks-reproduce.md
	$(BIN)/python benchmarks/bench_files.py --save docs/benchmarks-files.md
	$(BIN)/python benchmarks/bench_dask.py --save docs/benchmarks-dask.md
	$(BIN)/python benchmarks/bench_serve.py --save docs/benchmarks-serve.md

peers: $(READY) ## compare with other libraries, one table
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,peers]'
	$(BIN)/python benchmarks/bench_peers.py --save docs
	$(BIN)/python benchmarks/compare_kernels.py --save docs/benchmarks-kernel-trick.md

clean: ## remove what the other verbs made
	rm -rf docs/_build docs/gallery docs/generated
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
