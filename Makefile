# `make run` reproduces the nano study, `make test` runs the tests; each sets up .venv by itself.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
CORES ?= all
BIN := .venv/bin
INSTALLED := .venv/installed

export OMP_NUM_THREADS ?= 1
export HF_HUB_DISABLE_TELEMETRY ?= 1
export MLFLOW_DISABLE_TELEMETRY ?= true

.PHONY: run test test-ui lint format bench install ui clean

run: $(INSTALLED)
	$(BIN)/snakemake --cores $(CORES)

test: $(INSTALLED)
	$(BIN)/python -m pytest

# MLflow's pages in Chromium, and its server on PostgreSQL; what is not installed is skipped.
test-ui: $(INSTALLED)
	$(BIN)/python -m pytest -m ui -rs

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/snakemake --lint

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/snakefmt Snakefile workflow/rules

# Measured, never tested: figures depend on the machine.
bench: $(INSTALLED)
	$(BIN)/python benchmarks/bench_buffer.py
	$(BIN)/python benchmarks/bench_trainer.py
	$(BIN)/python benchmarks/bench_tracking.py

install: $(INSTALLED)

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(v not in ((3, 11), (3, 12)) and "Python 3.11 or 3.12 is needed, found %d.%d; name one: make PYTHON=..." % v)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $(INSTALLED)

ui: $(INSTALLED)
	$(BIN)/python -m grpo_replay.tracking.ui

# Lists what checkpoints of unfinished or edited cells occupy, then removes them.
clean:
	-du -sh results/*/checkpoints
	rm -rf results/*/checkpoints
