"""The machine that a job runs on: GPUs, log, provenance."""
