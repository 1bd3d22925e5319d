"""The published-data run: the paper's own numbers through the functions that make our tables.

What the paper prints is rounded: a number comes back where some values that round to the printed
inputs give one that rounds to the printed result. What needs an unpublished number is marked so.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from grpo_replay.reporting.labels import method_name, varied_name
from grpo_replay.reporting.numbers.conditions import PartialIdentity
from grpo_replay.reporting.paper import published
from grpo_replay.reporting.paper.efficiency import efficiency, ranks
from grpo_replay.reporting.paper.printed_cells import printed_cells
from grpo_replay.reporting.paper.training import percent_change, surviving_rollouts
from grpo_replay.reporting.tables.table import Row, Table
from grpo_replay.statistics.metrics import GAIN_WEIGHT, LOSS_WEIGHT

AGREES = "comes back"
DIFFERS = "the paper disagrees with itself"
UNKNOWN = "cannot be recomputed"
IMPOSSIBLE = "no such mean exists"


@dataclass(frozen=True)
class Check:
    """One printed number: where it stands, what the published inputs give, and the verdict."""

    table: str  # "table05"
    line: str
    quantity: str
    printed: str
    recomputed: float | int | None
    verdict: str
    remark: str = ""


def checks() -> list[Check]:
    """Every number of the paper that can be recomputed, and those that cannot, in table order."""
    return [
        *_impossible(),
        *_means_of_table01(),
        *_shared_cells(),
        *_aes_of_table05(),
        *_unpublished("table06", ("delta_correct_percent", "delta_incorrect_percent")),
        *_survivors_of_table08(),
        *_changes_of_table12(),
        *_ranking_of_table13(),
    ]


def check_table() -> Table:
    """The checks as a table: one line a number."""
    found = checks()
    count = {v: sum(c.verdict == v for c in found) for v in (AGREES, DIFFERS, IMPOSSIBLE, UNKNOWN)}
    return Table(
        title="The paper's numbers, recomputed from its other numbers",
        index={
            "table": "Table",
            "line": "Line",
            "quantity": "Quantity",
            "printed": "Printed",
            "recomputed": "Recomputed",
            "verdict": "Verdict",
            "remark": "Remark",
        },
        columns=[],
        rows=[Row(vars(check) | {"recomputed": _recomputed_text(check)}, {}) for check in found],
        notes=[
            "; ".join(f"{verdict}: {number}" for verdict, number in count.items()) + ".",
            "Comes back: some values that round to the printed inputs give a result that rounds to "
            "the printed one. The paper's numbers have n=1 training seed and no interval.",
        ],
    )


def _recomputed_text(check: Check) -> str | int | None:
    """One digit more than is printed, none of a rank."""
    if check.recomputed is None or isinstance(check.recomputed, int):
        return check.recomputed
    return f"{check.recomputed:.{published.decimals(check.printed) + 1}f}"


# --- rounding -------------------------------------------------------------------------------------


def comes_back(printed: str, of: Callable[..., float], inputs: list[str]) -> bool:
    """Whether unrounded inputs exist that give the printed result; `of` is monotone in each."""
    corners = [of(*values) for values in product(*((_low(text), _high(text)) for text in inputs))]
    return min(corners) <= _high(printed) + 1e-9 and max(corners) >= _low(printed) - 1e-9


def _half(text: str) -> float:
    return 0.5 * 10.0 ** -published.decimals(text)


def _low(text: str) -> float:
    return float(text) - _half(text)


def _high(text: str) -> float:
    return float(text) + _half(text)


def _check(
    table: str, line: str, quantity: str, printed: str, of: Callable[..., float], inputs: list[str]
) -> Check:
    verdict = AGREES if comes_back(printed, of, inputs) else DIFFERS
    return Check(table, line, quantity, printed, of(*map(float, inputs)), verdict)


# --- the tables -----------------------------------------------------------------------------------


def _impossible() -> Iterator[Check]:
    for line in published.rows("table01"):
        for column, text in line.items():
            if column not in ("scale", "method") and not published.possible(column, text):
                name, _, part = column.rpartition("_")
                n, k = published.BENCHMARKS[name]
                of = f"{n} problems x {k} samples" if part == "avg" else f"{n} problems"
                where = f"{line['scale']} {method_name(line['method'])}"
                yield Check("table01", where, column, text, None, IMPOSSIBLE, f"a mean over {of}")


def _means_of_table01() -> Iterator[Check]:
    for line in published.rows("table01"):
        for part in ("avg", "pass"):
            inputs = [line[f"{name}_{part}"] for name in published.BENCHMARKS]
            where = f"{line['scale']} {method_name(line['method'])}"
            yield _check("table01", where, part, line[part], unweighted_mean, inputs)


def unweighted_mean(*values: float) -> float:
    """The mean over the benchmarks (Avg and Pass of Table 1)."""
    return float(np.mean(values))


def _shared_cells() -> Iterator[Check]:
    for (scale, row), printed in printed_cells().items():
        if len(printed) > 1:
            agree = len({float(p.avg) for p in printed}) == 1
            agree &= len({float(p.passed) for p in printed if p.passed}) <= 1
            tables = ", ".join(str(int(p.table.removeprefix("table"))) for p in printed)
            texts = [p.avg if p.passed is None else f"{p.avg} / {p.passed}" for p in printed]
            shown = " = ".join(dict.fromkeys(texts))
            verdict = AGREES if agree else DIFFERS
            where = f"{scale} {describe(row)}"
            yield Check(
                printed[0].table, where, f"one cell in Tables {tables}", shown, None, verdict
            )


def describe(row: PartialIdentity) -> str:
    """A cell of the paper in words."""
    return ", ".join(filter(None, (method_name(row.name), varied_name(row.on_axes))))


def _references(name: str) -> dict[str, list[str]]:
    """Accuracy and length of Table 10 by scale."""
    return {
        line["scale"]: [line["accuracy_percent"], line["length_tokens"]]
        for line in published.rows("table10")
        if line["reference"] == name
    }


def _aes(*values: float) -> float:
    return efficiency(*values).aes


def _aes_of_table05() -> Iterator[Check]:
    best = published.rows("table13")[0]  # ours at the defaults, the one length that is published
    known = {("grpo", scale): pair for scale, pair in _references("grpo").items()}
    known["ours", "1.7B"] = [best["accuracy_percent"], best["length_tokens"]]
    for line in published.rows("table05"):
        for scale, reference in _references(line["reference"]).items():
            names = [method_name(line[key]) for key in ("method", "reference")]
            where = f"{' against '.join(names)}, {scale}"
            inputs = known.get((line["method"], scale))
            if inputs is None:
                remark = f"no length of {names[0]} at {scale} is published"
                yield Check("table05", where, "AES", line[scale], None, UNKNOWN, remark)
            else:
                yield _check("table05", where, "AES", line[scale], _aes, [*inputs, *reference])
    yield from _implied_lengths()


def implied_length(
    aes: float, accuracy: float, reference_accuracy: float, reference_length: float
) -> float:
    """The mean length in tokens that an AES and an accuracy imply: the AES solved for L."""
    gain = (accuracy - reference_accuracy) / reference_accuracy
    weighted = (GAIN_WEIGHT if gain >= 0 else LOSS_WEIGHT) * gain
    return reference_length * (1.0 + weighted - aes)


def _implied_lengths() -> Iterator[Check]:
    """Both references of `ours` must imply one length at each scale."""
    printed = {
        line["reference"]: line for line in published.rows("table05") if line["method"] == "ours"
    }
    main = [line for line in published.rows("table01") if line["method"] == "ours"]
    accuracy = {line["scale"]: line["avg"] for line in main}
    for scale in published.SCALES:
        ranges = {}
        for reference, line in printed.items():
            inputs = [line[scale], accuracy[scale], *_references(reference)[scale]]
            corners = [implied_length(*v) for v in product(*((_low(t), _high(t)) for t in inputs))]
            ranges[reference] = (min(corners), max(corners))
        low = max(ends[0] for ends in ranges.values())
        high = min(ends[1] for ends in ranges.values())
        remark = "; ".join(
            f"{method_name(name)} {a:.0f} to {b:.0f}" for name, (a, b) in ranges.items()
        )
        yield Check(
            "table05",
            f"ours, {scale}",
            "length in tokens that both references imply",
            "–",
            (low + high) / 2,
            AGREES if low <= high else DIFFERS,
            remark,
        )


def _unpublished(table: str, columns: tuple[str, ...]) -> Iterator[Check]:
    for line in published.rows(table):
        for column in columns:
            remark = "the lengths by correctness of ours are not published"
            yield Check(table, line["scale"], column, line[column], None, UNKNOWN, remark)


def _survivors_of_table08() -> Iterator[Check]:
    for line in published.rows("table08"):
        inputs = [line["all_correct_percent"], line["all_wrong_percent"]]
        b_fresh = float(line["b_fresh"])

        def surviving(*shares: float, b_fresh: float = b_fresh) -> float:
            return surviving_rollouts(b_fresh, *shares)

        column = "b_fresh_surviving"
        yield _check("table08", line["scale"], column, line[column], surviving, inputs)


def _changes_of_table12() -> Iterator[Check]:
    lines = {(line["method"], line["scale"]): line for line in published.rows("table12")}
    for scale in published.SCALES:
        ours, grpo = lines["ours", scale], lines["grpo", scale]
        inputs = [ours["length_tokens"], grpo["length_tokens"]]
        column = "delta_percent"
        yield _check("table12", f"ours, {scale}", column, ours[column], percent_change, inputs)


def _ranking_of_table13() -> Iterator[Check]:
    lines = published.rows("table13")
    reference = _references("grpo")["1.7B"]
    inputs = [[line["accuracy_percent"], line["length_tokens"], *reference] for line in lines]
    found = ranks([_aes(*map(float, values)) for values in inputs])
    for line, values, rank in zip(lines, inputs, found, strict=True):
        where = f"rank {line['rank']}"
        for field in ("delta_length_percent", "delta_accuracy_percent", "aes"):

            def number(*numbers: float, field: str = field) -> float:
                return getattr(efficiency(*numbers), field)

            yield _check("table13", where, field, line[field], number, values)
        verdict = AGREES if str(rank) == line["rank"] else DIFFERS
        yield Check("table13", where, "rank", line["rank"], rank, verdict)
