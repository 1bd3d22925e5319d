"""What all figures share: a grid of panels, empty panels that say so, and files without dates.

Works on matplotlib's Figure without pyplot: no global state, and no display is needed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from grpo_replay.files import whole_file

DPI = 150
EMPTY_TEXT = {
    "ha": "center",
    "va": "center",
    "color": "#555555",
    "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1.5},
}
STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    # The ids inside an SVG are random without it.
    "svg.hashsalt": "grpo-replay",
}


@contextmanager
def panels(
    stem: Path, rows: int, columns: int, width: float, height: float, title: str, **kwargs
) -> Iterator[tuple[Figure, np.ndarray]]:
    """Yield a figure and its (rows, columns) axes; write `<stem>.png` and `<stem>.svg` at the end.

    `width` and `height` are inches a panel; `kwargs` go to `Figure.subplots`.
    """
    with mpl.rc_context(STYLE):
        size = (max(width * columns, 5.2), height * rows + 0.7)
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(title, fontsize=11)
        yield figure, figure.subplots(rows, columns, squeeze=False, **kwargs)
        for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
            with whole_file(stem.with_name(stem.name + suffix)) as temporary:
                figure.savefig(temporary, dpi=DPI, metadata=metadata)


def say_empty(axes: Axes, text: str = "no finished cell") -> None:
    """Say in the middle of a panel why nothing is drawn in it."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, **EMPTY_TEXT)
    if not axes.has_data():
        axes.set_xticks([])
        axes.set_yticks([])


def legend_below(figure: Figure, axes_list: list[Axes], columns: int = 5) -> None:
    """One legend for all panels, below them; each label once, in the order it was first drawn."""
    handles: dict[str, object] = {}
    for axes in axes_list:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=min(columns, len(handles)),
            handlelength=3.2,
        )
