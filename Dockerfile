# The GPU stack: every rule of the workflow, with vLLM, from the pins that `make lock` wrote. For Linux
# on x86-64 with a CUDA 13 driver. It holds the packages; the project is mounted from the working tree.
#
#   docker build --tag grpo-replay .
#   docker run --rm --gpus all --ipc host --user "$(id -u):$(id -g)" --volume "$PWD":/project grpo-replay snakemake --cores all
#   apptainer build grpo-replay.sif docker-daemon://grpo-replay:latest     # then: apptainer exec --nv grpo-replay.sif snakemake ...
FROM python:3.12-slim-bookworm

# Triton and vLLM compile small C files when they start; git names the commit in every run,
# rsync serves the storage of profiles/kubernetes.
# Debian keeps one version of a package, so none can be pinned.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc git libc6-dev rsync \
    && rm -rf /var/lib/apt/lists/*

COPY requirements-gpu.lock /tmp/requirements-gpu.lock
RUN pip install --no-cache-dir --no-deps --requirement /tmp/requirements-gpu.lock

# Any user may run it: caches of models and kernels go where everybody may write.
ENV HOME=/tmp \
    HF_HUB_DISABLE_TELEMETRY=1 \
    VLLM_NO_USAGE_STATS=1
WORKDIR /project
CMD ["snakemake", "--cores", "all"]
