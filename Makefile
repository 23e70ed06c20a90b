# The README's two commands are `make demo` and `make test`; each sets up all it needs in .venv.
PYTHON ?= python3
BIN := .venv/bin

.DELETE_ON_ERROR:
.PHONY: help demo quick test lint docs coverage bench accuracy clean

help:  ## show this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 12

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "gcond needs Python 3.11 or newer: run make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

.venv/.run: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/.dev: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@ .venv/.run

demo: .venv/.run  ## condense CiteSeer and score what comes out, in under two minutes
	$(BIN)/gcond demo

quick: .venv/.dev  ## the tests without those that start browsers, Ray or processes to kill
	$(BIN)/pytest -n 2 -m 'not accuracy and not slow'

test: lint  ## style, types, order of the rooms, and every test but the accuracy runs
	$(BIN)/pytest -n 2

lint: .venv/.dev  ## style, types, and which room may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/.dev  ## the documentation site, in site/; anything broken in it is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

coverage: .venv/.dev  ## which lines and branches the tests reach, in htmlcov/
	$(BIN)/pytest -n 2 --cov --cov-report=term --cov-report=html

bench: .venv/.dev  ## what is fast, as ratios measured in one run
	$(BIN)/python benchmarks/propagation.py
	$(BIN)/python benchmarks/evaluation.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/nas.py
	$(BIN)/python benchmarks/choices.py
	$(BIN)/python benchmarks/threads.py --quick
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/condensation.py

accuracy: .venv/.dev  ## the long accuracy runs; they resume, and write docs/results.md
	$(BIN)/pytest -m accuracy tests/accuracy

clean:  ## remove the environment and caches
	rm -rf .venv dist site htmlcov .coverage .coverage.* gcond-demo
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
