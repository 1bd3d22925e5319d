"""The notes below tables."""

import sys
from collections.abc import Iterable

import pandas as pd

from grpo_replay.reporting.labels import BASE, method_name
from grpo_replay.reporting.numbers.settings import (
    Setting,
    finished_cells,
)
from grpo_replay.reporting.numbers.significance import mark_notes
from grpo_replay.study.cells import Cell, expand
from grpo_replay.study.config import Study

INTERVAL_NOTE = (
    "Percent [95 % interval]. One seed: BCa bootstrap over problems, Wilson where all outcomes "
    "are equal. Several seeds: mean over seeds, Student's t over seeds (over problems where all "
    "seeds agree)."
)


def setting_notes(settings: list[Setting]) -> list[str]:
    """The replay axes of each method, where it has them."""
    texts = dict.fromkeys((method_name(s.method), s.text) for s in settings if s.text)
    joined = "; ".join(f"{name}: {text}" for name, text in texts)
    return [f"Replay: {joined}."] if texts else []


def comparison_notes(scores: pd.DataFrame, settings: list[Setting]) -> list[str]:
    """How the marks were tested, and what the number of seeds allows to say."""
    counts = seed_counts(scores, settings)
    return [*mark_notes(counts), *seed_notes(scores, settings)]


def seed_notes(scores: pd.DataFrame, settings: list[Setting]) -> list[str]:
    """That one seed makes no claim, where a row has one."""
    if 1 not in seed_counts(scores, settings):
        return []
    return [
        "Seeds n=1: one training seed compares these trained models, and makes no claim about "
        "a method."
    ]


def seed_counts(scores: pd.DataFrame, settings: list[Setting]) -> list[int]:
    """How many seeds of each trained setting are finished."""
    return [len(finished_cells(scores, s)) for s in settings if s.method != BASE]


# Above this the note lists the missing cells in one line with one command.
FEW_MISSING = 4


def missing_notes(
    study: Study, scores: pd.DataFrame, settings: Iterable[Setting], config: str
) -> list[str]:
    """Say which cells are missing and the command that makes them; the same goes to stderr.

    `config` is what follows `--config` (`settings.config_text`).
    """
    present = set(scores["cell"])
    wanted = {cell.cell: cell for setting in settings for cell in setting.cells}
    missing = [cell for name, cell in wanted.items() if name not in present]
    if len(missing) > FEW_MISSING:
        names = ", ".join(cell.cell for cell in missing)
        all_left = [name for name in expand(study) if name not in present]
        command = _command(study, missing, config, narrowed=len(missing) < len(all_left))
        notes = [f"missing: {names}; make them with: `{command}`"]
    else:
        notes = [
            f"missing: {cell.cell}; make it with: `{_command(study, [cell], config)}`"
            for cell in missing
        ]
    for note in notes:
        print(f"warning: {note}", file=sys.stderr)
    return notes


def _command(study: Study, cells: list[Cell], config: str, narrowed: bool = True) -> str:
    # `--config` comes last: what follows it is taken for a setting.
    gpus = max(study.scales[cell.scale].gpus for cell in cells)
    declared = f" --resources gpu={gpus}" if gpus else ""
    only = f" only='{','.join(cell.cell for cell in cells)}'" if narrowed else ""
    return f"snakemake --cores all{declared} --config {config}{only}"
