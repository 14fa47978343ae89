# make demo | test | golden | lint | format | docs | figures | bench | bench-quick | bench-ab BASE=rev | clean
PYTHON ?= python3
PYTHON310 ?= python3.10
PYTEST_FLAGS ?= -n auto
BASE ?= HEAD~1
PIP_FLAGS := --quiet --disable-pip-version-check
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

BIN := .venv/bin
BENCH := .venv-bench/bin

.PHONY: help demo test golden lint format docs figures bench bench-quick bench-ab bench-environments clean
.NOTPARALLEL:

help:
	@sed -n '1s/^# //p' Makefile

demo: .venv/.demo
	$(BIN)/ellzero demo --picture demo.png

# One BLAS thread per pytest worker, or they fight over the cores.
test: .venv/.dev
	$(ONE_THREAD) $(BIN)/python -m pytest $(PYTEST_FLAGS)

# All golden files, or some: make golden GOLDEN='diabetes wine'.
golden: .venv/.dev
	PYTHONPATH=tests $(ONE_THREAD) $(BIN)/python -m golden $(GOLDEN)

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/.docs
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build
	@echo "The documentation is in docs/_build/index.html."

figures: .venv/.demo
	$(BIN)/ellzero demo --picture docs/demo.png > /dev/null

bench: bench-environments
	$(BENCH)/python -m benchmarks $(BENCH_FLAGS)

bench-quick: bench-environments
	$(BENCH)/python -m benchmarks --quick

# The working tree against the revision BASE, each in an environment of its own in .bench-ab.
bench-ab: .venv/.dev
	$(BIN)/python -m benchmarks.ab --base $(BASE) $(BENCH_FLAGS)

clean:
	rm -rf .venv .bench-ab .venv-bench .venv-okridge .venv-l0learn .pytest_cache .ruff_cache .mypy_cache build dist docs/_build demo.png
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The demo needs little; tests also need JAX, Dask and pandas, so they install on their own stamp.
.venv/.demo: pyproject.toml | $(BIN)/pip
	@echo "Installing ellzero for the demo into .venv ..."
	$(BIN)/pip install $(PIP_FLAGS) -e '.[plot]'
	@touch $@

.venv/.dev: pyproject.toml | $(BIN)/pip
	@echo "Installing ellzero and its test tools into .venv (JAX, Dask and Ray included, about 1.3 GB) ..."
	$(BIN)/pip install $(PIP_FLAGS) -e '.[dev,plot,jax,cli,dask]'
	@touch .venv/.demo $@

.venv/.docs: .venv/.dev
	@echo "Installing what makes the documentation into .venv ..."
	$(BIN)/pip install $(PIP_FLAGS) -e '.[docs]'
	@touch $@

.venv-bench/.installed: pyproject.toml benchmarks/requirements.txt | $(BENCH)/pip
	@echo "Installing ellzero and its peers into .venv-bench ..."
	$(BENCH)/pip install $(PIP_FLAGS) -e . -r benchmarks/requirements.txt
	@touch $@

# Two peers need old environments; where one cannot be made it is reported as not installed.
bench-environments: .venv-bench/.installed
	-@test -e .venv-okridge/.installed || { $(PYTHON) -m venv --clear .venv-okridge && \
	  .venv-okridge/bin/pip install $(PIP_FLAGS) -r benchmarks/requirements-okridge.txt && \
	  touch .venv-okridge/.installed; }
	-@test -e .venv-l0learn/.installed || { $(PYTHON310) -m venv --clear .venv-l0learn && \
	  .venv-l0learn/bin/pip install $(PIP_FLAGS) -r benchmarks/requirements-l0learn.txt && \
	  touch .venv-l0learn/.installed; }

%/bin/pip:
	@$(PYTHON) -m venv --clear $* || { rm -rf $*; \
	  echo "Could not make $*: this needs Python 3.10+ with venv (Debian: apt install python3-venv)."; \
	  exit 1; }
