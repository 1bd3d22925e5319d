"""Where the noise of avg@k comes from: components of variance at every scale."""

import math

from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.variance import ScaleComponents, scale_components
from grpo_replay.reporting.tables.parts import study_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Column, Row, Table
from grpo_replay.results.scores import problem_count
from grpo_replay.statistics.variance import PARTS, deviation_of_mean, deviation_over_seeds

HEADINGS = {
    "seed": "Seed, shared",
    "training": "Training run",
    "problem": "Problem",
    "method_problem": "Method × problem",
    "run_problem": "Run × problem",
    "sample": "Sample",
}
_NOTE = (
    "Standard deviations in points of avg@k, by moments (0: the estimate of the variance is below "
    "0). Seed, shared: what all methods of a seed have in common: its base model if every seed has "
    "its own, and the order of problems; with one method it is part of the training run. Methods "
    "are fixed, benchmarks weigh the same."
)
_MEANS = (
    "Mean: of a method's mean over these seeds, problems and answers, the problems drawn from a "
    "larger stock. Difference: of two methods with the same seeds and problems. Difference of a "
    "seed: its spread over the seeds on these very problems, which the t tests of the claims see."
)


def build(source: Source) -> Table:
    """A row a scale; one without two finished seeds is a row of dashes and a note."""
    of_scales = scale_components(source.study, source.scores)
    index = {"scale": "Scale", "methods": "Methods", "seeds": "Seeds (n)"}
    columns = [Column(name, "Standard deviation", HEADINGS[name]) for name in PARTS]
    columns += [
        Column("mean", "", "Mean"),
        Column("difference", "", "Difference"),
        Column("over_seeds", "", "Difference of a seed"),
    ]
    reasons = [f"Scale {of.scale}: {of.reason}." for of in of_scales if of.reason]
    conditions = [condition for of in of_scales for condition in of.conditions]
    rows = [_row(source, of) for of in of_scales]
    title = "Where the noise comes from"
    return study_table(source, title, index, columns, rows, conditions, _NOTE, _MEANS, *reasons)


def _row(source: Source, of: ScaleComponents) -> Row:
    labels = {"study": source.study.study, "scale": of.scale}
    if of.found is None:
        return Row(labels, {})
    benchmarks = source.study.benchmarks.values()
    # Of benchmarks that differ in size, as many problems as vary like their unweighted mean.
    count = round(len(benchmarks) ** 2 / sum(1 / problem_count(b) for b in benchmarks))
    k = round(len(benchmarks) / sum(1 / benchmark.k for benchmark in benchmarks))
    numbers: dict[str, Estimate | None] = {name: _known(getattr(of.found, name)) for name in PARTS}
    for key, methods in (("mean", 1), ("difference", 2)):
        numbers[key] = Estimate(deviation_of_mean(of.found, of.seeds, count, k, methods))
    numbers["over_seeds"] = Estimate(deviation_over_seeds(of.found, count, k))
    return Row(labels | {"methods": len(of.conditions), "seeds": of.seeds}, numbers)


def _known(value: float) -> Estimate | None:
    return None if math.isnan(value) else Estimate(value)
