"""Write one cell's settings and scores, and complete its run in MLflow."""

from pathlib import Path

from grpo_replay.machine.job import job
from grpo_replay.machine.made_from import made_from

cell, params = snakemake.wildcards.cell, snakemake.params
record = made_from(snakemake.input, snakemake.output.scores, params.resolved)
with job(snakemake.log[0], f"cell {snakemake.resources.position} {cell}") as terminal, record:
    from grpo_replay.evaluation.score import score_cell
    from grpo_replay.files import read_json, write_json
    from grpo_replay.tracking.series import evaluation_metrics
    from grpo_replay.tracking.sync import sync_scored_cell

    grades = dict(zip(params.benchmarks, map(Path, snakemake.input.grades), strict=True))
    settings, output = Path(snakemake.output.cell), Path(snakemake.output.scores)
    write_json(settings, params.resolved)
    score_cell(settings, grades, output)
    metrics = evaluation_metrics(read_json(output))
    sync_scored_cell(output.parent)
    terminal.say(f"finished: avg {metrics['eval/avg']:.1f} %, pass {metrics['eval/pass']:.1f} %")
