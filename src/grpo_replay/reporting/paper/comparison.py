"""The paper's numbers beside a study's: lines for this study, the paper, and the difference; in
Table 1 also for this study under the paper's own verifier.
"""

from dataclasses import replace

from grpo_replay.models.config import PretrainedModel
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.paper import published
from grpo_replay.reporting.tables.main import PAPER_VERIFIER
from grpo_replay.reporting.tables.table import Column, Row, Table
from grpo_replay.results.scores import problem_count
from grpo_replay.study.config import Study
from grpo_replay.tasks.config import FileBenchmark

IMPOSSIBLE = "§"
# What tells the lines of each published table apart; its other columns are numbers or texts.
KEYS = {
    "table01": ("scale", "method"),
    "table02": ("scale", "tau_max"),
    "table03": ("scale", "composition"),
    "table04": ("scale", "priority", "unit"),
    "table05": ("reference", "method"),
    "table06": ("scale",),
    "table08": ("scale",),
    "table09": ("scale", "replay_ratio", "alpha"),
    "table10": ("reference", "scale"),
    "table11": ("scale",),
    "table12": ("method", "scale"),
    "table13": ("priority", "unit", "alpha", "tau_max", "replay_ratio"),
}
PUBLISHED_SCALE = {"table13": "1.7B"}  # its lines do not name it
# Labels that a study and the paper have each their own of. They stand behind those that the lines
# of one comparison share, which are then printed once.
_OWN_LABELS = ("rank", "seeds")


def compare(study: Study, name: str, table: Table) -> Table:
    """`name` ("table01") of a study beside the paper's; without lines, and with a note that says
    so, where the two share no scale.
    """
    paper = {_key(name, line): line for line in _lines(name)}
    shared = [scale for scale in study.scales if scale in published.SCALES]
    columns = [c for c in table.columns if any(c.key in line for line in paper.values())]
    rows = []
    for row in table.rows:
        line = paper.get(_key(name, row.labels))
        if line is not None and shared:
            rows += _lines_of(row, line, columns)
    return replace(
        table,
        title=f"{table.title}, beside the paper's",
        index=_index(table.index),
        columns=_with_paper_decimals(columns, paper),
        rows=rows,
        notes=[*_notes(study, shared, rows), *(table.notes if rows else [])],
    )


def _index(index: dict[str, str]) -> dict[str, str]:
    shared = {key: title for key, title in index.items() if key not in _OWN_LABELS}
    return shared | {key: index[key] for key in _OWN_LABELS if key in index} | {"source": "Source"}


def _lines(name: str) -> list[dict[str, str]]:
    scale = {"scale": PUBLISHED_SCALE[name]} if name in PUBLISHED_SCALE else {}
    return [line | scale for line in published.rows(name)]


def _key(name: str, labels: dict) -> tuple[str, ...]:
    """The labels that name a line, in one spelling: 0.50, 0.5 and "0.5" are one."""
    columns = dict.fromkeys([*KEYS[name], *(["scale"] if name in PUBLISHED_SCALE else [])])
    return tuple(_spelling(labels.get(f"{c}_key", labels.get(c))) for c in columns)


def _spelling(value: object) -> str:
    if value is None:
        return "none"
    try:
        return f"{float(str(value)):g}"
    except ValueError:
        return str(value)


def _lines_of(row: Row, line: dict[str, str], columns: list[Column]) -> list[Row]:
    paper = {c.key: _printed(c.key, line) for c in columns}
    differences = {key: _difference(row.numbers.get(key), paper[key]) for key in paper}
    printed_labels = {key: line[key] for key in ("rank",) if key in line}
    own = {c.key: row.numbers.get(c.key) for c in columns}
    unnumbered = dict.fromkeys(_OWN_LABELS)
    verdicts = {c.key: row.numbers.get(f"{c.key}{PAPER_VERIFIER}") for c in columns}
    again = Row(row.labels | {"source": "this study, paper's verifier"}, verdicts)
    return [
        Row(row.labels | {"source": "this study"}, own),
        *([again] if any(verdicts.values()) else []),
        Row(row.labels | unnumbered | printed_labels | {"source": "paper"}, paper),
        Row(row.labels | unnumbered | {"source": "difference"}, differences),
    ]


def _printed(column: str, line: dict[str, str]) -> Estimate | None:
    text = line.get(column, "")
    if not text:
        return None
    return Estimate(float(text), marks="" if published.possible(column, text) else IMPOSSIBLE)


def _difference(own: Estimate | None, paper: Estimate | None) -> Estimate | None:
    """Own minus paper, with the own interval: how sure the paper's number is, is not published."""
    if own is None or paper is None:
        return None

    def shifted(end: float | None) -> float | None:
        return None if end is None else end - paper.value

    return replace(
        own,
        value=own.value - paper.value,
        **{end: shifted(getattr(own, end)) for end in ("low", "high", "seeds_low", "seeds_high")},
        marks="",
        p_problems=None,
        p_seeds=None,
    )


def _with_paper_decimals(columns: list[Column], paper: dict[tuple, dict[str, str]]) -> list[Column]:
    return [
        replace(c, decimals=max(published.decimals(line.get(c.key, "")) for line in paper.values()))
        for c in columns
    ]


def _notes(study: Study, shared: list[str], rows: list[Row]) -> list[str]:
    if not shared:
        return [
            f"The study {study.study} has none of the paper's scales "
            f"({', '.join(published.SCALES)}): there is nothing to compare."
        ]
    if not rows:
        return [f"The study {study.study} has no line that the paper's table has."]
    notes = [
        "Difference: this study minus the paper, with this study's interval; the paper's number "
        "has n=1 training seed and no published interval.",
        *_not_the_papers(study, shared),
    ]
    numbers = [number for row in rows for number in row.numbers.values() if number]
    if any(number.marks == IMPOSSIBLE for number in numbers):
        notes.append(
            f"{IMPOSSIBLE} printed by the paper, but no mean over the benchmark's problems (and "
            "samples) rounds to it: read it, and the mean that it enters, with care."
        )
    return notes


def _not_the_papers(study: Study, shared: list[str]) -> list[str]:
    """A note on the models and benchmarks of a study that are others than the paper's."""
    models = [scale for scale in shared if not _is_the_papers_model(study, scale)]
    names = [*study.benchmarks, *(b for b in published.BENCHMARKS if b not in study.benchmarks)]
    benchmarks = [name for name in names if not _is_the_papers_benchmark(study, name)]
    parts = [
        *([f"the models of {', '.join(models)} (Qwen3-<scale>-Base)"] if models else []),
        *([f"the benchmarks under {', '.join(benchmarks)}"] if benchmarks else []),
    ]
    if not parts:
        return []
    return [
        f"Not the paper's: {', and '.join(parts)}. A difference says nothing about the paper's "
        "results."
    ]


def _is_the_papers_model(study: Study, scale: str) -> bool:
    model = study.scales[scale].model
    return isinstance(model, PretrainedModel) and f"Qwen3-{scale}-Base" in model.name


def _is_the_papers_benchmark(study: Study, name: str) -> bool:
    benchmark = study.benchmarks.get(name)
    if not isinstance(benchmark, FileBenchmark):
        return False
    return published.BENCHMARKS.get(name) == (problem_count(benchmark), benchmark.k)
