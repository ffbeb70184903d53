# `make` alone lists what can be done. Every target sets up the environment it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# The benchmarks read public data from MANYKERNELS_DATA. A data folder kept beside the
# checkout is found on its own; a value already set is left alone.
ifndef MANYKERNELS_DATA
FOUND_DATA := $(shell cd ../shared/data 2>/dev/null && pwd)
ifneq ($(FOUND_DATA),)
export MANYKERNELS_DATA := $(FOUND_DATA)
endif
endif

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-oldest test-slow test-browser test-omics explore check docs package bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv and install the package with its development tools

$(STAMP): pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { \
		echo "'$(PYTHON)' was not found. Name a Python 3.11 or newer: make setup PYTHON=python3.12" >&2; \
		exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "manykernels needs Python 3.11 or newer; '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1)." >&2; \
		echo "Name a newer one: make setup PYTHON=python3.12" >&2; \
		exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	@touch $@

demo: $(STAMP) ## learn which views of a digit matter, and draw it
	$(BIN)/python examples/start/plot_which_views_matter.py

# One worker per core, and one BLAS thread in each. Tests differ much in length, so a worker
# that has nothing left to do takes from the others.
test test-oldest test-slow test-browser test-omics explore: export OPENBLAS_NUM_THREADS = 1
test test-oldest test-slow test-browser test-omics explore: export OMP_NUM_THREADS = 1
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

test: $(STAMP) ## run the tests and the examples in the docstrings
	$(PYTEST)

# uv resolves to the lowest versions that pyproject.toml names.
OLDEST := .venv-oldest
test-oldest: $(OLDEST)/.installed ## run the tests with the oldest versions of the dependencies
	$(OLDEST)/bin/python -m pytest -n auto --dist worksteal

$(OLDEST)/.installed: pyproject.toml
	"$(PYTHON)" -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet uv
	$(OLDEST)/bin/uv pip install --quiet --python $(OLDEST) --resolution lowest-direct -e ".[test]"
	@touch $@

test-slow: $(STAMP) ## run the tests that take long: examples, benchmarks, further variants
	$(PYTEST) -m slow

test-browser: $(STAMP) ## look at reports in a browser (the system's chromium)
	@command -v chromium >/dev/null || { \
		echo "No chromium was found: install the Debian package chromium (apt install chromium)." >&2; \
		exit 1; }
	$(PYTEST) -m browser tests/browser

# The tutorial of MuData, with the packages of the extra "omics".
OMICS := .venv-omics
test-omics: $(OMICS)/.installed ## run what needs AnnData and MuData, in an environment of its own
	$(OMICS)/bin/python -m pytest -m omics tests/test_docs.py

$(OMICS)/.installed: pyproject.toml
	"$(PYTHON)" -m venv --clear $(OMICS)
	$(OMICS)/bin/python -m pip install --quiet -e ".[test,omics]"
	@touch $@

# How often each test with random cases is run, each time with new cases.
export EXPLORE_ROUNDS ?= 20
explore: $(STAMP) ## look for counterexamples with new random cases (EXPLORE_ROUNDS=20)
	HYPOTHESIS_PROFILE=explore $(PYTEST) -m hypothesis tests

check: export OPENBLAS_NUM_THREADS = 1
check: $(STAMP) ## lint, formatting, types, spelling, counts of what fits do
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python -m benchmarks.guard

# Without network and without warnings. Examples are drawn again when they have changed.
docs: export OPENBLAS_NUM_THREADS = 1
docs: $(STAMP) ## build the documentation, docs/_build/html/index.html
	rm -rf docs/reference/generated # pages of names that are no more
	$(BIN)/python -m sphinx -b html -W --keep-going docs docs/_build/html

# The wheel is installed beside its dependencies only, and fits a model there.
package: $(STAMP) ## build wheel and source archive into dist/, and try the wheel
	rm -rf dist build/wheel
	$(BIN)/python -m build
	$(BIN)/python -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet dist/*.whl
	cd build && wheel/bin/python -W error -c 'import numpy as np, manykernels as mk; \
		X = np.arange(20.0)[:, None]; \
		print(mk.__version__, mk.MKFDA().fit(X, X[:, 0] > 9).certificate_)'

bench: $(STAMP) ## run the benchmarks (public data: see benchmarks/_data.py)
	$(BIN)/python -m benchmarks.defaults
	$(BIN)/python -m benchmarks.core
	$(BIN)/python -m benchmarks.solvers
	$(BIN)/python -m benchmarks.ye2008
	$(BIN)/python -m benchmarks.ye2008_studies
	$(BIN)/python -m benchmarks.yan2012
	$(BIN)/python -m benchmarks.voc
	$(BIN)/python -m benchmarks.flower
	$(BIN)/python -m benchmarks.gonen2013
	$(BIN)/python -m benchmarks.strings
	$(BIN)/python -m benchmarks.protein
	$(BIN)/python -m benchmarks.comparison
	$(BIN)/python -m benchmarks.choices
	$(BIN)/python -m benchmarks.survival
	$(BIN)/python -m benchmarks.studies
	$(BIN)/python -m benchmarks.path
	$(BIN)/python -m benchmarks.denoising
	$(BIN)/python -m benchmarks.simulation
	$(BIN)/python -m benchmarks.large
	$(BIN)/python -m benchmarks.svm
	$(BIN)/python -m benchmarks.easymkl
	$(BIN)/python -m benchmarks.ridge
	$(BIN)/python -m benchmarks.threads
	$(BIN)/python -m benchmarks.localized
	$(BIN)/python -m benchmarks.regions
	$(BIN)/python -m benchmarks.many_kernels
	$(BIN)/python -m benchmarks.kernels_on_demand
	$(BIN)/python -m benchmarks.approximation
	$(BIN)/python -m benchmarks.landmarks
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.cluster
	$(BIN)/python -m benchmarks.medium
	$(BIN)/python -m benchmarks.importing
	$(BIN)/python -m benchmarks.missing
	$(BIN)/python -m benchmarks.building
	$(BIN)/python -m benchmarks.safety
	$(BIN)/python -m benchmarks.certificates
	$(BIN)/python -m benchmarks.importance
	$(BIN)/python -m benchmarks.columns
	$(BIN)/python -m benchmarks.pages

clean: ## remove everything that can be rebuilt, the environment too
	rm -rf docs/_build docs/auto_examples docs/reference/generated
	rm -rf $(VENV) $(OLDEST) $(OMICS) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
