"""The notes below tables: a builder says which apply, in their order, and all are written here."""

import sys
from collections.abc import Callable

from grpo_replay.reporting.labels import BASE, method_name, varied_name
from grpo_replay.reporting.numbers.conditions import Condition, finished_cells
from grpo_replay.reporting.numbers.significance import NOTE_PROBLEMS, NOTE_SEEDS
from grpo_replay.reporting.tables.source import Source
from grpo_replay.study.cells import Cell, expand

# A sentence that is always the same, or what is to be said of the rows; that may be nothing.
Note = str | Callable[[Source, list[Condition]], list[str]]

INTERVALS = (
    "Percent [95 % interval]. One seed: BCa bootstrap over problems, Wilson where all outcomes "
    "are equal. Several seeds: mean over seeds, Student's t over seeds (over problems where all "
    "seeds agree). Near 0 or 100 an interval over some 30 problems is too short: at 2.4 it holds "
    "the true value in 80 to 90 % of cases."
)


def notes_below(source: Source, conditions: list[Condition], *wanted: Note) -> list[str]:
    """The lines below a table whose rows are made from some conditions; what is missing ends them.

    That goes to stderr, too.
    """
    lines: list[str] = []
    for note in (*wanted, missing):
        lines += [note] if isinstance(note, str) else note(source, conditions)
    return lines


def replay(source: Source, conditions: list[Condition]) -> list[str]:
    """The axes of replay of each method, where it has them."""
    return _replay([f"{method_name(c.method)}: {c.replay_text}" for c in _replaying(conditions)])


def replay_but_age(source: Source, conditions: list[Condition]) -> list[str]:
    """The same for a table that has tau_max in its rows."""
    axes = [condition.axes for condition in _replaying(conditions)]
    return _replay([f"r {of.replay_ratio:g}, α {of.alpha:g}" for of in axes])


def _replaying(conditions: list[Condition]) -> list[Condition]:
    return [c for c in conditions if c.cells and c.replay_text]


def _replay(texts: list[str]) -> list[str]:
    return [f"Replay: {'; '.join(dict.fromkeys(texts))}."] if texts else []


def marks(source: Source, conditions: list[Condition]) -> list[str]:
    """How the marks were tested."""
    several = max(_seed_counts(source, conditions), default=0) > 1
    return [NOTE_PROBLEMS, *([NOTE_SEEDS] if several else [])]


def one_seed(source: Source, conditions: list[Condition]) -> list[str]:
    """That one seed makes no claim, where a row has one."""
    if 1 not in _seed_counts(source, conditions):
        return []
    return [
        "Seeds n=1: one training seed compares these trained models, and makes no claim about "
        "a method."
    ]


def seeds(source: Source, conditions: list[Condition]) -> list[str]:
    """How many seeds stand behind a table that has no column for them."""
    several = [str(n) for n in sorted(set(_seed_counts(source, conditions))) if n > 1]
    note = f"Rows of several seeds: n = {' or '.join(several)} seeds, as far as finished."
    return [*one_seed(source, conditions), *([note] if several else [])]


def _seed_counts(source: Source, conditions: list[Condition]) -> list[int]:
    """How many seeds of each trained condition are finished."""
    return [len(finished_cells(source.scores, c)) for c in conditions if c.method != BASE]


# --- what is missing ------------------------------------------------------------------------------

# Above this the note lists the missing cells in one line with one command.
FEW_MISSING = 4


def missing(source: Source, conditions: list[Condition]) -> list[str]:
    """Which cells are missing with the command that makes them, and which rows the grid lacks."""
    notes = _missing_cells(source, conditions)
    for note in notes:
        print(f"warning: {note}", file=sys.stderr)
    return notes + _not_in_grid(source, conditions)


def _missing_cells(source: Source, conditions: list[Condition]) -> list[str]:
    present = set(source.scores["cell"])
    wanted = {cell.cell: cell for condition in conditions for cell in condition.cells}
    absent = [cell for name, cell in wanted.items() if name not in present]
    if len(absent) <= FEW_MISSING:
        return [f"missing: {c.cell}; make it with: `{_command(source, [c])}`" for c in absent]
    names = ", ".join(cell.cell for cell in absent)
    all_left = [name for name in expand(source.study) if name not in present]
    command = _command(source, absent, narrowed=len(absent) < len(all_left))
    return [f"missing: {names}; make them with: `{command}`"]


def _command(source: Source, cells: list[Cell], narrowed: bool = True) -> str:
    # `--config` comes last: what follows it is taken for a setting.
    gpus = max(source.study.scales[cell.scale].gpus for cell in cells)
    declared = f" --resources gpu={gpus}" if gpus else ""
    only = f" only='{','.join(cell.cell for cell in cells)}'" if narrowed else ""
    return f"snakemake --cores all{declared} --config {source.config}{only}"


def _not_in_grid(source: Source, conditions: list[Condition]) -> list[str]:
    by_text: dict[str, list[str]] = {}
    for condition in dict.fromkeys(c for c in conditions if not c.cells):
        settings = [varied_name([pair]) for pair in condition.varied]
        text = " ".join([method_name(condition.method), *settings])
        by_text.setdefault(text, []).append(condition.scale)
    if not by_text:
        return []
    texts = "; ".join(f"{text} at {', '.join(scales)}" for text, scales in by_text.items())
    return [f"The grid of the study {source.study.study} has no cell of: {texts}."]
