"""The jobs of a study from its data to the table of its scores, with what the rules give each to
read, to make and to go by: what `machine/made_from.py` has records of.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from grpo_replay.machine.made_from import Step
from grpo_replay.planning.preflight import source_files
from grpo_replay.planning.run import Run
from grpo_replay.study.cells import (
    benchmark_problems,
    evaluation_settings,
    grading_settings,
    problems_params,
    resolve,
    selection_params,
    training_settings,
    warm_start_params,
)


def steps(run: Run) -> Iterator[Step]:
    """Every job of the chosen cells that has inputs, makers before users."""
    yield from _data(run)
    for scale in dict.fromkeys(cell.scale for cell in run.chosen.values()):
        yield from _start(run, scale)
    for name in run.chosen:
        yield from _cell(run, name)
    scores = [Path(path) for path in run.scores()]
    yield Step(scores, [run.files.scores], partial(run.study.model_dump, mode="json"))


def _data(run: Run) -> Iterator[Step]:
    study, files = run.study, run.files
    problems = study.problems
    yield Step(_paths(source_files(problems)), [files.problems], partial(problems_params, study))
    for name, benchmark in study.benchmarks.items():
        source, made = _paths(source_files(benchmark)), files.benchmark(name)
        yield Step(source, [made], partial(benchmark_problems, study, benchmark))


def _start(run: Run, scale: str) -> Iterator[Step]:
    study, files = run.study, run.files
    if study.warm_start:
        read = [files.base_model(scale), *_paths(source_files(study.warm_start))]
        made = files.warm_started_model(scale)
        yield Step(read, [made], partial(warm_start_params, study))
    if study.prompt_selection:
        read, made = [run.start_model(scale), files.problems], files.selected_problems(scale)
        yield Step(read, [made], partial(selection_params, study, scale))


def _cell(run: Run, name: str) -> Iterator[Step]:
    study, cell, files = run.study, run.cell(name), run.files.cell(name)
    if cell.trained:
        read = [run.start_model(cell.scale), run.training_problems(cell.scale)]
        yield Step(read, files.training_outputs(), partial(training_settings, study, cell))
    benchmarks = [run.files.benchmark(benchmark) for benchmark in study.benchmarks]
    samples = [files.samples(benchmark) for benchmark in study.benchmarks]
    grades = [files.grades(benchmark) for benchmark in study.benchmarks]
    drawn = [files.manifest, *samples]
    yield Step([run.policy(name), *benchmarks], drawn, partial(evaluation_settings, study, cell))
    yield Step([*benchmarks, *drawn], grades, partial(grading_settings, study))
    yield Step(grades, [files.scores, files.settings], partial(resolve, study, cell))


def _paths(names: Iterable[str]) -> list[Path]:
    return [Path(name) for name in names]
