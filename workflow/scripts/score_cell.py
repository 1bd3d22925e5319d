"""Score one cell, and add the scores to its run in MLflow."""

import json
from pathlib import Path

from grpo_replay.console import job

cell, params = snakemake.wildcards.cell, snakemake.params
with job(snakemake.log[0], f"cell {snakemake.resources.position} {cell}") as terminal:
    from grpo_replay.reporting.scores import score_cell
    from grpo_replay.tracking import evaluation_metrics, log_scores

    grades = dict(zip(params.benchmarks, map(Path, snakemake.input.grades), strict=True))
    output = Path(snakemake.output.scores)
    cell_file = Path(snakemake.input.cell)
    score_cell(cell_file, grades, output)
    metrics = evaluation_metrics(json.loads(output.read_text(encoding="utf-8")))
    log_scores(cell_file, metrics)
    terminal.say(f"finished: avg {metrics['eval/avg']:.1f} %, pass {metrics['eval/pass']:.1f} %")
