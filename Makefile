# The README's two commands are `make demo` and `make test`; each sets up all it needs in .venv.
PYTHON ?= python3
BIN := .venv/bin

.DELETE_ON_ERROR:
.PHONY: help demo test lint bench accuracy clean

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

demo: .venv/.run  ## reduce CiteSeer and score what comes out, in under two minutes
	$(BIN)/gcond demo

lint: .venv/.dev  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint  ## style, types and the quick tests
	$(BIN)/pytest -n 2

bench: .venv/.dev  ## what is fast, as ratios measured in one run
	$(BIN)/python benchmarks/propagation.py
	$(BIN)/python benchmarks/evaluation.py
	$(BIN)/python benchmarks/nas.py
	$(BIN)/python benchmarks/choices.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/condensation.py

accuracy: .venv/.dev  ## the long accuracy runs; they resume, and write docs/results.md
	$(BIN)/pytest -m accuracy tests/accuracy

clean:  ## remove the environment and caches
	rm -rf .venv dist gcond-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
