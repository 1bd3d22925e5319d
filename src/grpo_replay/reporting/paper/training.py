"""Tables 8 and 12 of the paper, from the training metrics: effective batch, and training length."""

import numpy as np

from grpo_replay.reporting.labels import method_name
from grpo_replay.reporting.numbers.conditions import Condition
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.significance import (
    FEWEST_SEEDS,
    GRPO_ALONE,
    NOTE_SEEDS,
    PValues,
    marked,
    p_over_seeds,
)
from grpo_replay.reporting.numbers.training import (
    STEPS_NOTE,
    mean_over_steps,
    over_seeds,
    step_frames,
)
from grpo_replay.reporting.paper.design_space import METHOD, NO_REPLAY
from grpo_replay.reporting.tables import notes
from grpo_replay.reporting.tables.parts import study_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Column, Row, Table
from grpo_replay.results.training_metrics import LENGTH
from grpo_replay.statistics.metrics import relative_change

SURVIVORS = "survivors/rollouts"
NO_MARKS = (
    f"No marks: a run has one such number (its steps and rollouts are not independent), and the t "
    f"test over seeds needs {FEWEST_SEEDS} that both methods share."
)
ALL_CORRECT, ALL_WRONG = "groups/all_correct_percent", "groups/all_wrong_percent"


def surviving_rollouts(
    b_fresh: float, all_correct_percent: float, all_wrong_percent: float
) -> float:
    """Rollouts that remain of `b_fresh` without the groups of equal rewards (Table 8)."""
    return b_fresh * (1.0 - (all_correct_percent + all_wrong_percent) / 100.0)


def percent_change(value: float, reference: float) -> float:
    """By how many percent a length differs from GRPO's (Table 12)."""
    return float(100.0 * relative_change(value, reference))


def table08(source: Source) -> Table:
    """Table 8: what remains of GRPO's batch, mean over the steps."""
    conditions = [source.at(scale, NO_REPLAY) for scale in source.scales]
    return study_table(
        source,
        "Table 8: effective batch of GRPO",
        {"scale": "Scale"},
        [
            Column("b_fresh", "Rollouts a step", "sampled", decimals=0),
            Column("b_fresh_surviving", "Rollouts a step", "surviving"),
            Column("all_correct_percent", "Groups dropped (%)", "all correct", decimals=2),
            Column("all_wrong_percent", "Groups dropped (%)", "all wrong", decimals=2),
        ],
        [_batch_row(source, condition) for condition in conditions],
        conditions,
        f"Mean over all {source.study.training.steps} steps. {STEPS_NOTE}",
        *(GRPO_ALONE, notes.seeds),
    )


def _batch_row(source: Source, condition: Condition) -> Row:
    frames = step_frames(source.scores, source.results, condition)

    sampled = source.study.training.rollouts_per_step
    numbers = {
        "b_fresh": Estimate(float(sampled)),
        "b_fresh_surviving": mean_over_steps(frames, SURVIVORS, highest=sampled),
        "all_correct_percent": mean_over_steps(frames, ALL_CORRECT, highest=100.0),
        "all_wrong_percent": mean_over_steps(frames, ALL_WRONG, highest=100.0),
    }
    return Row({"study": source.study.study, "scale": condition.scale}, numbers)


def table12(source: Source) -> Table:
    """Table 12: mean response length at the last training step, GRPO and `ours`."""
    rows, conditions, tests = [], [], []
    for row in (NO_REPLAY, METHOD):
        for scale in source.scales:
            condition, grpo = source.at(scale, row), source.at(scale, NO_REPLAY)
            keys = {"study": source.study.study, "method_key": row.name}
            labels = {"method": method_name(row.name), "scale": scale}
            numbers = {"length_tokens": _length(source, condition), "delta_percent": None}
            if row is not NO_REPLAY:
                changed, test = _change(source, condition, grpo)
                numbers |= marked({"delta_percent": changed}, {"delta_percent": test})
                tests.append(test)
            rows.append(Row(keys | labels, numbers))
            conditions.append(condition)
    return study_table(
        source,
        "Table 12: response length in training",
        {"method": "Method", "scale": "Scale"},
        [
            Column("length_tokens", "", "Length (tokens)", decimals=0),
            Column("delta_percent", "", "against GRPO (%)", tested=True),
        ],
        rows,
        conditions,
        f"Mean over the rollouts of step {source.study.training.steps}, the last one; n=1: one "
        "training run, whose rollouts of one step share a policy. Several seeds: Student's t.",
        NOTE_SEEDS if any(test.seeds is not None for test in tests) else NO_MARKS,
        *(notes.replay, notes.seeds),
    )


def _last_lengths(source: Source, condition: Condition) -> dict[int | None, tuple[float, int]]:
    """(mean length, 1 step) by seed; a run that has not reached the last step has none."""
    last = source.study.training.steps
    frames = step_frames(source.scores, source.results, condition)
    lengths = {
        s: float(frame.at[last, LENGTH]) for s, frame in frames.items() if last in frame.index
    }
    return {seed: (length, 1) for seed, length in lengths.items() if not np.isnan(length)}


def _length(source: Source, condition: Condition) -> Estimate | None:
    return over_seeds(_last_lengths(source, condition))


def _change(
    source: Source, condition: Condition, grpo: Condition
) -> tuple[Estimate | None, PValues]:
    """Mean over the shared seeds of the percent change, and its test over them."""
    lengths, references = (_last_lengths(source, s) for s in (condition, grpo))
    shared = [seed for seed in lengths if seed in references]
    pairs = [(lengths[seed][0], references[seed][0]) for seed in shared]
    changes = [percent_change(length, reference) for length, reference in pairs]
    exchanged = [percent_change(reference, length) for length, reference in pairs]
    found = {seed: (value, 1) for seed, value in zip(shared, changes, strict=True)}
    return over_seeds(found, lowest=-100.0), PValues(seeds=p_over_seeds(changes, exchanged))
