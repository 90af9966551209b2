# One set of verbs for people and for CI. Each installs what it needs into .venv first, and no more.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# bytecode is kept even where the environment forbids it: the tests start Python many times
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup test test-slow fuzz lint cli format demo annotate-demo docs bench peers clean
.DEFAULT_GOAL := help

help: ## show the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

# .venv/.NAME says that ordspan[NAME] is installed; modules are compiled when they are first imported
$(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable '.[$*]'
	@touch $@

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ordspan needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

setup: $(VENV)/.dev ## install what tests, linters and documentation need, all at once
	@touch $(VENV)/.test $(VENV)/.lint $(VENV)/.docs

PYTEST := $(BIN)/pytest -n auto --dist worksteal
test: $(VENV)/.test ## run all tests but the slow ones, doctests and the README's examples
	$(PYTEST) -m 'not slow' $(TESTS)

test-slow: $(VENV)/.test ## run the slow tests: browsers, kills, attacks, searches, compiling
	$(PYTEST) -m slow $(TESTS)

MINUTES ?= 10
fuzz: $(VENV)/.test ## attack files, models and estimators for MINUTES (10) with new seeds
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/fuzz $(BIN)/python tests/fuzz/run.py --minutes $(MINUTES) $(FUZZERS)

lint: $(VENV)/.lint ## check style, types, the direction of imports and docs/cli.md
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/refresh_cli.py --check

cli: $(VENV)/.lint ## write the help of every command to docs/cli.md
	$(BIN)/python docs/refresh_cli.py

format: $(VENV)/.lint ## rewrite the code in the project's style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo: $(VENV)/.experiments ## reproduce the paper on the data that is here
	$(BIN)/ordspan reproduce

annotate-demo: $(VENV)/.serve ## grade 150 invented flats on a page that learns
	$(BIN)/ordspan annotate examples/data/flats.csv --grades poor,fair,good,great --id flat --drop notes \
	  --question 'How good is this offer?' --state $(VENV)/annotate-demo

docs: $(VENV)/.docs ## build the documentation site; warnings are errors
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

BENCHMARKS := foundation compile kernel ranges files sentences dask serve reproduce
bench: $(VENV)/.bench ## measure every speed claim of the README, a table each
	for name in $(BENCHMARKS); do \
	  $(BIN)/python benchmarks/bench_$$name.py --save docs/measured/$$name.md || exit 1; done

peers: $(VENV)/.peers ## compare with other libraries, one table
	$(BIN)/python benchmarks/bench_peers.py --save docs/measured/peers.csv

clean: ## remove what the other verbs made
	rm -rf docs/_build docs/gallery docs/generated
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
