# Two commands do all the set-up: `make demo` and `make test`. Both make the environment in .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all test-oldest coverage lint package release-check bench bench-large bench-gpu scaling doc clean

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "paretomkl needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(STAMP)  ## the first minute: digits from three sources, scores, importances, a page
	$(BIN)/paretomkl demo

test: $(STAMP) lint  ## everything that must hold, in minutes
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

test-all: $(STAMP) lint  ## the slow tests too
	$(BIN)/python -m pytest -n 2 --dist loadgroup

test-oldest:  ## the tests with the oldest dependencies that pyproject.toml allows, in an environment of their own
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet uv
	VIRTUAL_ENV=.venv-oldest .venv-oldest/bin/uv pip install --quiet --resolution lowest-direct --editable '.[test]'
	# old numba and SciPy take two seconds to import, so how long the import takes is not tested here
	.venv-oldest/bin/python -m pytest -n 2 --dist loadgroup -m "not slow" --deselect tests/learn/test_path.py::test_import_is_quick_and_compiles_nothing

coverage: $(STAMP)  ## which lines the tests run; fails below 95 %
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow" --cov --cov-report=term --cov-report=html:build/coverage

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

package: $(STAMP)  ## wheel and sdist, into dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

release-check: $(STAMP)  ## the checklist of a release, one line per check
	$(BIN)/python tools/release.py

bench: $(STAMP)  ## speed and accuracy against the obvious implementations; writes doc/benchmarks.md
	$(BIN)/python benchmarks/bench.py

bench-large: $(STAMP)  ## many samples, kernels and tasks; writes doc/large.md
	$(BIN)/python benchmarks/large.py

bench-gpu: $(STAMP)  ## large problems on a GPU and on the cores beside it; writes benchmarks/gpu.json
	$(BIN)/python benchmarks/gpu.py

scaling: $(STAMP)  ## cost against N, M and T; writes doc/scaling.md
	$(BIN)/python benchmarks/scaling.py

doc: $(STAMP)  ## this site, into doc/_build/html; every warning is an error
	$(BIN)/sphinx-build -W --keep-going -n -b html doc doc/_build/html

clean:
	rm -rf $(VENV) .venv-oldest build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache doc/_build doc/auto_examples doc/api/generated
