"""Forest plot of the claims: each difference over seeds in units of its margin."""

import math
from pathlib import Path

from matplotlib.axes import Axes

from grpo_replay.reporting.figures.canvas import legend_below, panels, say_empty
from grpo_replay.reporting.labels import figure_text, plain_text
from grpo_replay.reporting.numbers.claims import JudgedClaim, judge
from grpo_replay.reporting.numbers.estimate import DASH
from grpo_replay.results.scores import read_scores
from grpo_replay.statistics.claims import Verdict
from grpo_replay.study.config import Study

# Colours of Okabe and Ito, and markers that differ in grey too.
_LOOKS = {
    Verdict.HOLDS: ("#009E73", "o"),
    Verdict.FAILS: ("#D55E00", "X"),
    Verdict.EQUAL: ("#0072B2", "s"),
    Verdict.UNDECIDED: ("#7f7f7f", "D"),
}
# Margins from 0, to both sides at most: what lies beyond is drawn at the edge, with an arrow.
_WIDEST = 6.0


def claims_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Every claim with its difference, 95 % (thin) and 90 % interval (thick), divided by the margin
    of equivalence, which is shaded; adjusted p, seeds and verdict beside it.
    """
    judged = [one for family in judge(study, read_scores(results), results) for one in family]
    title = plain_text(f"Claims over training seeds, in margins of equivalence ({study.title})")
    height = 0.8 + 0.36 * max(len(judged), 2)
    with panels(output_stem, 1, 1, 11.0, height, title) as (figure, axes):
        panel = axes[0, 0]
        panel.axvspan(-1, 1, color="#0072B2", alpha=0.08, linewidth=0)
        panel.axvline(0, color="#444444", linewidth=0.8)
        for position, one in enumerate(judged):
            _draw(panel, position, one)
        panel.set_yticks(range(len(judged)), [_claim_text(one) for one in judged], fontsize=8)
        panel.set_ylim(max(len(judged), 1) - 0.4, -0.6)
        panel.set_xlim(-_WIDEST, _WIDEST)
        panel.set_xlabel("difference / margin of equivalence; above 0 the claim is right")
        if not judged:
            say_empty(panel, "the grid has the conditions of no claim")
        legend_below(figure)


def _draw(panel: Axes, position: int, judged: JudgedClaim) -> None:
    beside = (1.02, position)
    panel.text(
        *beside, _result_text(judged), transform=panel.get_yaxis_transform(), va="center", size=8
    )
    if judged.finding is None:
        return
    found, margin = judged.finding.evidence, judged.placed.claim.margin
    colour, marker = _LOOKS[judged.verdict]
    for ends, width in (((found.low, found.high), 1.0), ((found.equal_low, found.equal_high), 3.0)):
        if not math.isnan(ends[0]):
            low, high = (min(max(end / margin, -_WIDEST), _WIDEST) for end in ends)
            panel.plot([low, high], [position] * 2, color=colour, linewidth=width)
    at = found.difference / margin
    inside = min(max(at, -_WIDEST), _WIDEST)
    arrow = marker if inside == at else (">" if at > 0 else "<")
    panel.plot(
        [inside], [position], marker=arrow, color=colour, linestyle="", clip_on=False, zorder=3
    )
    panel.plot([], [], marker=marker, color=colour, linestyle="", label=str(judged.verdict))


def _claim_text(judged: JudgedClaim) -> str:
    scale = f" (scale {judged.placed.scale})" if judged.placed.scale else ""
    text = f"{judged.placed.claim.claim.replace('`', '')}{scale}"
    return f"{figure_text(plain_text(text))}\n{figure_text(plain_text(judged.compared))}"


def _result_text(judged: JudgedClaim) -> str:
    p = DASH if math.isnan(judged.p) else f"{judged.p:.3f}"
    return f"{judged.verdict_text}, p {p}, n={judged.seeds}"
