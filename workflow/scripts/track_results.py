"""Keep the study's tables and figures as artifacts in MLflow."""

from pathlib import Path

from grpo_replay.console import job

with job(snakemake.log[0], "tracking"):
    from grpo_replay.tracking import log_results

    files = [Path(file) for file in snakemake.input.files]
    log_results(snakemake.params.study, files)
    Path(snakemake.output[0]).write_text("\n".join(map(str, files)) + "\n", encoding="utf-8")
