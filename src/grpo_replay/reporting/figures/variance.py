"""Components of variance as bars: where the noise of avg@k comes from."""

import math
from pathlib import Path

from matplotlib.axes import Axes

from grpo_replay.reporting.figures.canvas import panels, say_empty
from grpo_replay.reporting.labels import plain_text
from grpo_replay.reporting.numbers.variance import ScaleComponents, scale_components
from grpo_replay.results.scores import read_scores
from grpo_replay.statistics.variance import PARTS
from grpo_replay.study.config import Study

_NAMES = ("seed, shared", "training run", "problem", "method × problem", "run × problem", "sample")


def variance_figure(study: Study, results: Path, output_stem: Path) -> None:
    """The standard deviation of every component of avg@k in points, a panel a scale."""
    of_scales = scale_components(study, read_scores(results))
    title = plain_text(f"Where the noise of avg@k comes from ({study.title})")
    with panels(output_stem, 1, len(of_scales), 3.4, 2.6, title, sharey=True) as (_, axes):
        for panel, of in zip(axes[0], of_scales, strict=True):
            _draw(panel, of)


def _draw(panel: Axes, of: ScaleComponents) -> None:
    n = f", n={of.seeds}" if of.found else ""
    panel.set_title(f"scale {of.scale}{n}")
    panel.set_xlabel("standard deviation (points)")
    if of.found is None:
        say_empty(panel, of.reason)
        return
    values = [getattr(of.found, name) for name in PARTS]
    panel.barh(_NAMES, [0.0 if math.isnan(v) else v for v in values], color="#0072B2")
    for position, value in enumerate(values):
        text = "not told apart" if math.isnan(value) else f"{value:.1f}"
        panel.text(0.0 if math.isnan(value) else value, position, f" {text}", va="center", size=8)
    panel.set_ylim(len(values) - 0.4, -0.6)
    panel.margins(x=0.25)
