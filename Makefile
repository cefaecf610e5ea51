# Two commands do all the set-up: `make demo` and `make test`. Both make the environment in .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all lint bench bench-large scaling doc clean

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "paretomkl needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(STAMP)  ## trace the Pareto path on scikit-learn's digits
	$(BIN)/paretomkl demo

test: $(STAMP) lint  ## everything that must hold, in minutes
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-all: $(STAMP) lint  ## the slow tests too
	$(BIN)/python -m pytest -n 2

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)  ## speed and accuracy against the obvious implementations; writes doc/benchmarks.md
	$(BIN)/python benchmarks/bench.py

bench-large: $(STAMP)  ## many samples, kernels and tasks; writes doc/large.md
	$(BIN)/python benchmarks/large.py

scaling: $(STAMP)  ## cost against N, M and T; writes doc/scaling.md
	$(BIN)/python benchmarks/scaling.py

doc: $(STAMP)  ## this site, into doc/_build/html; every warning is an error
	$(BIN)/sphinx-build -W --keep-going -n -b html doc doc/_build/html

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache doc/_build doc/auto_examples doc/api/generated
