"""Table 1 of the paper: every method on every benchmark, with chance line and base model."""

from grpo_replay.reporting.numbers.chance import chance_percent
from grpo_replay.reporting.numbers.conditions import (
    Condition,
    finished_cells,
    grpo_of,
    main_conditions,
)
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.means import benchmark_number
from grpo_replay.reporting.numbers.significance import SHORT
from grpo_replay.reporting.tables import notes
from grpo_replay.reporting.tables.parts import Line, marked_rows, mean_columns, study_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Column, Row, Table
from grpo_replay.results.scores import problem_count
from grpo_replay.statistics.evaluation_metrics import TABULATED, EvaluationMetric
from grpo_replay.study.config import Study

PAPER_VERIFIER = ":grade_paper"  # ends the keys of numbers that its verdicts give
_MEANS = "Avg and Pass: unweighted means over the benchmarks."


def build(source: Source) -> Table:
    """The main conditions of a study; a cell without scores is a dash and a note."""
    rows, shown = [], []
    for scale in source.scales:
        found = main_conditions(source.study, scale)
        rows += [_chance_row(source.study, scale)]
        rows += benchmark_rows(source, [Line(c, {"method": c.name}) for c in found], grpo_of(found))
        shown += found
    means_note = f"{_MEANS} Chance: answers drawn at random."
    return benchmark_table(source, "Accuracy of every method", rows, shown, means_note)


def benchmark_table(
    source: Source,
    title: str,
    rows: list[Row],
    conditions: list[Condition],
    means_note: str = _MEANS,
    decimals: int = 1,
) -> Table:
    """Rows of `benchmark_rows` as a table."""
    index = {"scale": "Scale", "method": "Method", "seeds": "Seeds (n)"}
    below = (notes.INTERVALS, means_note, notes.replay, notes.marks, notes.one_seed)
    columns = _columns(source.study, decimals)
    return study_table(source, title, index, columns, rows, conditions, *below)


def _columns(study: Study, decimals: int) -> list[Column]:
    """The metrics of every benchmark that have a heading, then Avg and Pass."""
    columns = []
    for name, benchmark in study.benchmarks.items():
        sizes = {"n": problem_count(benchmark), "k": benchmark.k}
        for metric in TABULATED:
            texts = (metric.heading.format(**sizes), metric.basis.format(**sizes))
            columns.append(Column(_key(name, metric), benchmark.title, *texts, decimals))
    return columns + mean_columns(study, "Mean", decimals)


def _key(benchmark: str, metric: EvaluationMetric) -> str:
    return f"{benchmark}_{SHORT.get(metric.name, metric.name)}"


def benchmark_rows(source: Source, lines: list[Line], grpo: Condition | None) -> list[Row]:
    """A row a line of one scale: every benchmark, and the means with marks against GRPO."""

    def numbers(condition: Condition) -> dict[str, Estimate | None]:
        own = {
            _key(name, metric): benchmark_number(source.scores, condition, name, metric)
            for name in source.study.benchmarks
            for metric in TABULATED
        }
        return own | _by_the_papers_verifier(source, condition)

    return marked_rows(source, lines, grpo, numbers)


def _by_the_papers_verifier(source: Source, condition: Condition) -> dict[str, Estimate | None]:
    """avg@k and its mean under the paper's verifier (math-verify on the raw text), for the
    comparison with the paper's numbers.
    """
    cells = [cell.cell for cell in finished_cells(source.scores, condition)]
    if not cells:
        return {}
    own = source.scores[source.scores["cell"].isin(cells)]
    means = own.groupby("benchmark")["avg_at_k_paper"].mean().dropna()
    if means.empty:  # a task without that verifier
        return {}
    numbers: dict[str, Estimate | None] = {
        f"{name}_avg{PAPER_VERIFIER}": Estimate(float(mean)) for name, mean in means.items()
    }
    return numbers | {f"avg{PAPER_VERIFIER}": Estimate(float(means.mean()))}


def _chance_row(study: Study, scale: str) -> Row:
    chances = {name: chance_percent(study, b) for name, b in study.benchmarks.items()}
    numbers: dict[str, Estimate | None] = {
        f"{name}_{part}": Estimate(value)
        for name, parts in chances.items()
        for part, value in parts.items()
    }
    for part in ("avg", "pass"):
        numbers[part] = Estimate(sum(c[part] for c in chances.values()) / len(chances))
    labels = {"study": study.study, "scale": scale, "method": "chance", "method_key": "chance"}
    return Row(labels, numbers)
