"""Look at a study one problem at a time: what `notebooks/explore_results.ipynb` shows.

Everything is read from the study's folder of results (`results`), never from its study file or
MLflow. `cells` is a glob over cell ids, as in `--config only=`. Functions return data frames; those
called `show_*` return the same as HTML, with the problem above and the texts readable.
"""

import json
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from grpo_replay.errors import DataError, listing, suggestion
from grpo_replay.reporting.browse.html import styled
from grpo_replay.reporting.labels import BASE
from grpo_replay.results.grades import verdicts_in
from grpo_replay.results.layout import CellFiles, StudyFiles
from grpo_replay.results.scores import read_scores
from grpo_replay.study.axes import REPLAY_AXES
from grpo_replay.study.cells import Cell
from grpo_replay.tasks.problems import read_problems

_AXES = ["scale", "method", "tau_max", "replay_ratio", "alpha", "seed"]
# In a grades file `method` is the grader's; here it would be taken for a training method.
_CLEARER = {"method": "decided_by"}
_SHOWN_NAMES = 8


def existing(path: Path) -> Path:
    """The path of a result, which must be there.

    Raises:
        DataError: naming the file and the repair.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; run snakemake for this study, or correct the path")
    return path


def study_cells(results: Path, cells: str = "*") -> pd.DataFrame:
    """The finished cells, in the study's order, by their axes and mean scores.

    Returns one row a cell (index) with scale, method, tau_max, replay_ratio, alpha, seed, any other
    setting that a cell varies, by its path, and the unweighted means over the benchmarks `avg` and
    `pass` in percent (Table 1). What a method does not use or vary is missing.

    Raises:
        DataError: no scores, or a glob that matches no cell.
    """
    scores = read_scores(existing(StudyFiles(results).scores).parent)
    by_cell = scores.groupby("cell", sort=False)
    # `first` would skip missing axes; a cell's rows agree in them.
    first = by_cell.head(1).set_index("cell")
    frame = first[_AXES].join(_further_settings(first["varied"]))
    means = by_cell[["avg_at_k", "pass_at_k"]].mean()
    frame = frame.join(means.rename(columns={"avg_at_k": "avg", "pass_at_k": "pass"}))
    chosen = [cell for cell in frame.index if fnmatchcase(cell, cells)]
    if not chosen:
        raise DataError(f"{results}: no finished cell matches {cells!r}{_known(frame.index)}")
    return frame.loc[chosen].convert_dtypes()


def _further_settings(varied: pd.Series) -> pd.DataFrame:
    """What the cells vary besides the settings that have a column of their own."""
    settings = [json.loads(text) for text in varied]
    own = [{k: v for k, v in of_cell.items() if k not in REPLAY_AXES} for of_cell in settings]
    return pd.DataFrame(own, index=varied.index)


def as_cell(cells: pd.DataFrame, name: str) -> Cell:
    """A row of `study_cells` as far as the readers of its files need it."""
    return Cell(cell=name, scale=cells.at[name, "scale"], method=cells.at[name, "method"])


# --- a benchmark problem and its samples ----------------------------------------------------------


def benchmark_names(results: Path) -> list[str]:
    """The benchmarks of a study, in its order."""
    return list(
        dict.fromkeys(read_scores(existing(StudyFiles(results).scores).parent)["benchmark"])
    )


def benchmark_overview(results: Path, benchmark: str, cells: str = "*") -> pd.DataFrame:
    """Percent of a problem's k samples that are correct: one row a problem, one column a cell."""
    chosen = list(study_cells(results, cells).index)
    scores = read_scores(results)
    scores = scores[scores["benchmark"] == benchmark].set_index("cell")
    if scores.empty:
        raise _unknown("benchmark", benchmark, benchmark_names(results), results)
    accuracy = {
        cell: pd.Series(scores.loc[cell, "problem_accuracy"], scores.loc[cell, "problem_ids"])
        for cell in chosen
    }
    return pd.DataFrame(accuracy).rename_axis(index="problem_id", columns="cell")


def samples(results: Path, benchmark: str, problem_id: str, cells: str = "*") -> pd.DataFrame:
    """Every sample of a problem with the verdicts of all verifiers: one row a sample.

    Columns: cell, sample_id, text, extracted (the answer that was found in it), correct (the
    verdict of the tables), those of the other verifiers (of mathematics grade_paper, math-verify on
    the raw text, and grade_training, whether the training reward is +1), decided_by (the rule
    behind `correct`), timed_out, n_tokens, finish_reason.

    Raises:
        DataError: an unknown benchmark or problem, or samples that are not there.
    """
    benchmark_problem(results, benchmark, problem_id)
    frames = []
    for cell in study_cells(results, cells).index:
        files = CellFiles(results, cell)
        drawn, graded = (
            pd.read_parquet(
                existing(path),
                filters=[("problem_id", "==", problem_id)],
            )
            for path in (files.samples(benchmark), files.grades(benchmark))
        )
        key = ["problem_id", "sample_id"]
        verdicts = verdicts_in(graded)
        both = drawn.merge(graded[_grades(graded)], on=key, validate="one_to_one")
        frames.append(both.rename(columns=_CLEARER).assign(cell=cell))
    columns = ["cell", "sample_id", "text", "extracted", *verdicts, "decided_by", "timed_out"]
    return pd.concat(frames, ignore_index=True)[[*columns, "n_tokens", "finish_reason"]]


def benchmark_problem(results: Path, benchmark: str, problem_id: str) -> dict[str, str]:
    """A benchmark problem: id, problem, answer, and what its source adds."""
    path = StudyFiles(results).benchmark(benchmark)
    if not path.is_file():
        raise _unknown("benchmark", benchmark, benchmark_names(results), results)
    return _problem(path, problem_id)


def show_samples(results: Path, benchmark: str, problem_id: str, cells: str = "*") -> Styler:
    """`samples` as HTML, with the problem and its answer above."""
    problem = benchmark_problem(results, benchmark, problem_id)
    return styled(samples(results, benchmark, problem_id, cells), problem)


def disagreements(results: Path, cells: str = "*") -> pd.DataFrame:
    """The samples on which the verifiers do not agree: what to read first of a new study."""
    chosen = study_cells(results, cells).index
    frames = []
    for benchmark in benchmark_names(results):
        for cell in chosen:
            path = existing(CellFiles(results, cell).grades(benchmark))
            frame = pd.read_parquet(path)
            frame = frame[_grades(frame)]
            differ = frame[verdicts_in(frame)].nunique(axis=1) > 1
            frames.append(frame[differ].assign(benchmark=benchmark, cell=cell))
    found = pd.concat(frames, ignore_index=True)
    first = ["benchmark", "cell"]
    return found[[*first, *found.columns.drop(first)]].rename(columns=_CLEARER)


def _grades(graded: pd.DataFrame) -> list[str]:
    """The columns of a file of grades that are shown; benchmarks may differ in their verifiers."""
    verdicts = verdicts_in(graded)
    return ["problem_id", "sample_id", *verdicts, "extracted", "method", "timed_out"]


# --- a training problem and its rollouts ----------------------------------------------------------


def training_overview(results: Path, cell: str) -> pd.DataFrame:
    """The problems that a cell trained on, the most replayed first: one row a problem.

    Columns: rollouts sampled, of these correct (the first verifier's word) and survived (in a group
    of mixed rewards), replays (rows of later steps), most_replays of one rollout, oldest replay in
    steps.
    """
    sampled, trained = _records(results, cell)
    replays = trained[trained["replayed"].astype(bool)]
    counts = replays.groupby(["problem_id", "rollout_id"]).size()
    groups = sampled.groupby("problem_id")
    frame = pd.DataFrame(
        {
            "rollouts": groups.size(),
            "correct": groups["correct"].sum(),
            "survived": groups["survived"].sum(),
            "replays": replays.groupby("problem_id").size(),
            "most_replays": counts.groupby("problem_id").max(),
            "oldest": replays.groupby("problem_id")["age"].max(),
        }
    )
    # A problem that was never replayed has no oldest replay: that stays missing.
    frame = frame.fillna({"replays": 0, "most_replays": 0}).convert_dtypes()
    return frame.sort_values("replays", ascending=False, kind="stable")


def rollouts(results: Path, cell: str, problem_id: str) -> pd.DataFrame:
    """The rollouts of a training problem, and when each was replayed: one row a rollout.

    Columns: step (of birth), rollout_id, text, reward, advantage (frozen at birth), survived,
    replays, replayed_at (the steps, as text), length (tokens), truncated.

    Raises:
        DataError: an unknown or untrained cell, or a problem that it never sampled.
    """
    own, trained = _records_of(results, cell, problem_id)
    steps = trained[trained["replayed"].astype(bool)].groupby("rollout_id")["step"].apply(list)
    at = [steps.get(rollout, []) for rollout in own["rollout_id"]]
    own = own.assign(
        replays=[len(found) for found in at],
        replayed_at=[", ".join(map(str, found)) for found in at],
    )
    columns = ["step", "rollout_id", "text", "reward", "advantage", "survived", "replays"]
    return own[[*columns, "replayed_at", "length", "truncated"]].reset_index(drop=True)


def uses(results: Path, cell: str, problem_id: str) -> pd.DataFrame:
    """Every time that a rollout of a training problem was trained on: one row a use.

    Columns: step, rollout_id, age (steps since birth, 0 is fresh), replayed, reward, advantage,
    log_ratio (nats a token: the mean over the rollout's tokens of the log of the importance ratio
    to its birth policy, when it was trained on) and ratio = exp of it.
    """
    _, own = _records_of(results, cell, problem_id)
    own = own.sort_values(["step", "rollout_id"])
    columns = ["step", "rollout_id", "age", "replayed", "reward", "advantage", "log_ratio"]
    return own[columns].assign(ratio=np.exp(own["log_ratio"])).reset_index(drop=True)


def show_rollouts(results: Path, cell: str, problem_id: str) -> Styler:
    """`rollouts` as HTML, with the problem and its answer above."""
    problem = _problem(StudyFiles(results).problems, problem_id)
    return styled(rollouts(results, cell, problem_id), problem)


def _records(results: Path, cell: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Every sampled rollout of a cell, and every row that it trained on."""
    known = study_cells(results)
    known = known.index[known["method"] != BASE]
    if cell not in known:
        raise _unknown("trained cell", cell, known, results)
    files = CellFiles(results, cell)
    sampled, trained = (
        pd.read_parquet(existing(path)) for path in (files.rollouts, files.trained_rows)
    )
    if "correct" not in sampled:  # written when a reward above 0 was all that correct meant
        sampled = sampled.assign(correct=sampled["reward"] > 0)
    return sampled, trained


def _records_of(results: Path, cell: str, problem_id: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The same of one problem, which the cell must have sampled."""
    sampled, trained = _records(results, cell)
    if problem_id not in set(sampled["problem_id"]):
        raise _unknown("sampled problem", problem_id, sampled["problem_id"].unique(), cell)
    own, uses_of = (frame[frame["problem_id"] == problem_id] for frame in (sampled, trained))
    return own, uses_of


# --- shared ---------------------------------------------------------------------------------------


def _problem(path: Path, problem_id: str) -> dict[str, str]:
    problems = {problem["id"]: problem for problem in read_problems(path)}
    if problem_id not in problems:
        raise _unknown("problem", problem_id, problems, path)
    return problems[problem_id]


def _unknown(kind: str, name: str, known: Iterable[str], place: object) -> DataError:
    known = list(known)
    return DataError(f"{place}: no {kind} {name!r}{suggestion(name, known)}{_known(known)}")


def _known(names: Iterable[str]) -> str:
    return f"; there are: {listing(names, _SHOWN_NAMES)}"
