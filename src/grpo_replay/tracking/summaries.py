"""Runs above the cells: one a scale and method with means over seeds, one with the tables."""

import re
from pathlib import Path
from statistics import fmean, stdev

from grpo_replay.files import digest, file_digest
from grpo_replay.reporting.labels import BASE, figure_text, method_name
from grpo_replay.reporting.numbers.conditions import Condition, all_conditions, main_conditions
from grpo_replay.reporting.paper.printed_cells import tables_of
from grpo_replay.results.progress import is_finished
from grpo_replay.study.cells import value_text
from grpo_replay.study.config import Study
from grpo_replay.tracking.cell_results import CellResults
from grpo_replay.tracking.pictures import reward_over_seeds
from grpo_replay.tracking.runs import COMPLETE
from grpo_replay.tracking.series import evaluation_metrics
from grpo_replay.tracking.store import NOTE, Store

# What a parent carries of conditions other than its main one; spreads are there from two seeds on.
_SHORT = ("avg", "avg_sd", "pass", "pass_sd")


def sync_summaries(store: Store, study: Study, results: Path) -> None:
    """Means, spreads and the figure over seeds in the parent of every scale and method."""
    groups: dict[tuple[str, str], list[Condition]] = {}
    for condition in all_conditions(study):
        groups.setdefault((condition.scale, condition.method), []).append(condition)
    for (scale, method), conditions in groups.items():
        default = next(s for s in main_conditions(study, scale) if s.method == method)
        finished = {s: _finished(study, s, results) for s in conditions}
        if any(finished.values()):
            _sync_parent(store, default, finished)


def _finished(study: Study, condition: Condition, results: Path) -> list[CellResults]:
    cells = [cell for cell in condition.cells if is_finished(study, cell, results)]
    found = [CellResults(results, cell.cell) for cell in cells]
    return [cell for cell in found if cell.scores]


def _sync_parent(
    store: Store, default: Condition, finished: dict[Condition, list[CellResults]]
) -> None:
    run_id = store.parent(default.scale, default.method)
    run = store.client.get_run(run_id)
    metrics: dict[str, float] = {}
    for condition, cells in finished.items():
        values = seed_means(cells)
        if condition == default:
            metrics |= values
        else:
            short = {n: values[f"eval/{n}"] for n in _SHORT if f"eval/{n}" in values}
            # MLflow refuses commas and brackets in a name, and with it all that is sent along.
            varied = re.sub(r"[^\w./: -]", "", _varied(condition))
            metrics |= {f"settings/{varied} {name}": short[name] for name in short}
    tables = sorted(
        {name for condition in finished for c in condition.cells for name in tables_of(c)}
    )
    text = (
        f"Means over training seeds: `eval/...` of {_varied(default) or 'all its cells'}, `_sd` "
        "the sample standard deviation (from two seeds on), `seeds` their number."
    )
    store.set_tags(run, {NOTE: text, "tables": ", ".join(tables), "status": "complete"})
    store.set_metrics(run, metrics, step=0)
    sha256 = digest({_varied(s): [c.digest() for c in cells] for s, cells in finished.items()})
    if run.data.tags.get(COMPLETE) != sha256:
        name = figure_text(method_name(default.method))
        records = {
            figure_text(s.text) or name: [c.records for c in cells] for s, cells in finished.items()
        }
        if figure := reward_over_seeds(f"{default.scale}, {name}", records):
            store.client.log_figure(run_id, figure, "reward_over_seeds.png")
        store.set_tags(run, {COMPLETE: sha256})


def seed_means(cells: list[CellResults]) -> dict[str, float]:
    """Mean and sample standard deviation of each evaluation metric over a condition's seeds."""
    values = [evaluation_metrics(cell.scores) for cell in cells]
    if not values:
        return {}
    metrics = {name: fmean(v[name] for v in values) for name in values[0]}
    if len(values) > 1:
        metrics |= {f"{name}_sd": stdev(v[name] for v in values) for name in values[0]}
    return metrics | ({} if cells[0].cell.method == BASE else {"seeds": float(len(values))})


def _varied(condition: Condition) -> str:
    return ", ".join(f"{path} {value_text(value)}" for path, value in condition.varied)


def sync_results(store: Store, results: Path) -> None:
    """The study's tables and figures as artifacts of a run of their own."""
    files = sorted([*results.glob("tables/*.*"), *results.glob("figures/*.*")])
    if not files:
        return
    sha256 = digest([[path.name, file_digest(path)] for path in files])
    with store.lock:
        found = store.runs(stage="results")
        run = found[0] if found else store.create("tables and figures", {"stage": "results"})
    if run.data.tags.get(COMPLETE) != sha256:
        for file in files:
            store.client.log_artifact(run.info.run_id, str(file), file.parent.name)
        store.set_tags(run, {COMPLETE: sha256, "status": "complete"})
    store.status(run, "FINISHED")
