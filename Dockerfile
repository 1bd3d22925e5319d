# The GPU stack: every rule of the workflow, with vLLM, from the pins that `make lock` wrote. For Linux
# on x86-64 with a CUDA 13 driver. It holds the packages; the project is mounted from the working tree.
#
#   docker build --tag grpo-replay .
#   docker run --rm --gpus all --ipc host --user "$(id -u):$(id -g)" --volume "$PWD":/project grpo-replay \
#     snakemake --cores all --config study=paper --resources gpu=8
#   apptainer build grpo-replay.sif docker-daemon://grpo-replay:latest     # then: apptainer exec --nv grpo-replay.sif snakemake ...
#
# Results stay in the working tree. What comes from the Hub is lost with the container, unless the study's
# `hub_cache` is a folder below the working tree, or a mounted one: --volume /disk/hub:/hub --env HF_HOME=/hub
# Problems and models of your own: --volume /disk/data:/data --env GRPO_REPLAY_DATA=/data (GRPO_REPLAY_MODELS likewise).
FROM python:3.12-slim-bookworm

# Triton and vLLM compile small C files when they start; git names the commit in every run,
# rsync serves the storage of profiles/kubernetes.
# git shall read a working tree that is another user's too.
# Debian keeps one version of a package, so none can be pinned.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc git libc6-dev rsync \
    && rm -rf /var/lib/apt/lists/* \
    && git config --system --add safe.directory /project

COPY requirements-gpu.lock /tmp/requirements-gpu.lock
RUN pip install --no-cache-dir --no-deps --requirement /tmp/requirements-gpu.lock

# Any user may run it, also one that has no name here, which compilers of kernels ask for: caches go
# where everybody may write.
ENV HOME=/tmp \
    LOGNAME=researcher \
    HF_HUB_DISABLE_TELEMETRY=1 \
    VLLM_NO_USAGE_STATS=1
WORKDIR /project
CMD ["snakemake", "--cores", "all"]
