# Everything a contributor types. Each target sets up what it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test explore chaos lint bench  reports clean
.DEFAULT_GOAL := test

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("fencekit needs Python 3.11 to 3.13; try: make PYTHON=python3.11" if not (3, 11) <= sys.version_info[:2] < (3, 14) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e .
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[dev]'
	touch $@ $(VENV)/.run

demo: $(VENV)/.run
	$(BIN)/fencekit demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_ARGS)

explore: $(VENV)/.dev
	FENCEKIT_REQUIRE_ALL=1 $(BIN)/python -m pytest tests/core/test_exploration.py

# CHAOS_SECONDS: for how long each ledger is troubled. The seed drives clients and nemesis.
chaos: $(VENV)/.dev
	@echo "CHAOS_SEED=$${CHAOS_SEED:-1} CHAOS_SECONDS=$${CHAOS_SECONDS:-120}"
	CHAOS_SEED=$${CHAOS_SEED:-1} CHAOS_SECONDS=$${CHAOS_SECONDS:-120} \
		$(BIN)/python -m pytest -s --timeout 3600 tests/chaos

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(PIP) -e '.[bench]'
	for b in benchmarks/[a-z]*.py; do PYTHONPATH=. $(BIN)/python $$b || exit 1; done

reports: $(VENV)/.run
	SOURCE_DATE_EPOCH=1796083200 $(BIN)/fencekit index build reports/register --out reports/site

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
