"""What all figures share: a grid of panels, empty panels that say so, and files without dates.

Works on matplotlib's Figure without pyplot: no global state, and no display is needed.
"""

import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from grpo_replay.files import atomic_file
from grpo_replay.reporting.labels import Style
from grpo_replay.reporting.numbers.estimate import Estimate

DPI = 150
# About what text takes: a letter of a title and of a legend, and a legend's entry besides its text.
_TITLE_INCHES, _LEGEND_INCHES, _ENTRY_INCHES = 0.085, 0.075, 0.8
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
    # Ticks are numbers to be read, not to be added to another one above the axis.
    "axes.formatter.useoffset": False,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    # The ids inside an SVG are random without it.
    "svg.hashsalt": "grpo-replay",
    # TrueType: publishers refuse matplotlib's default (Type 3).
    "pdf.fonttype": 42,
}
# Without dates and versions, the same results give the same bytes.
_METADATA = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in our style over matplotlib's own: a `matplotlibrc` of the user changes nothing."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


@contextmanager
def panels(
    stem: Path, rows: int, columns: int, width: float, height: float, title: str, **kwargs
) -> Iterator[tuple[Figure, np.ndarray]]:
    """Yield a figure and its (rows, columns) axes; write `<stem>.png`, `.svg`, `.pdf` at the end.

    `width` and `height` are inches a panel; `kwargs` go to `Figure.subplots`.
    """
    with style():
        size = (max(width * columns, 5.2), height * rows + 0.7)
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(_wrapped(title, size[0]), fontsize=11)
        yield figure, figure.subplots(rows, columns, squeeze=False, **kwargs)
        # Ticks follow from the size of their panel, and its size from their labels: laid out once
        # here, and again with each file.
        figure.draw_without_rendering()
        for suffix, metadata in _METADATA.items():
            with atomic_file(stem.with_name(stem.name + suffix)) as temporary:
                figure.savefig(temporary, dpi=DPI, metadata=metadata)


def _wrapped(title: str, inches: float) -> str:
    width = int(inches / _TITLE_INCHES)
    parts = [
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in title.splitlines()
    ]
    return "\n".join(parts)


def draw_point(
    panel: Axes,
    x: Estimate | float,
    y: Estimate | float,
    style: Style,
    label: str | None = None,
) -> None:
    """Draw one value in its look, with the interval of each coordinate that has one."""
    at = [number.value if isinstance(number, Estimate) else number for number in (x, y)]
    ends = [error(number) if isinstance(number, Estimate) else None for number in (x, y)]
    panel.errorbar(
        [at[0]],
        [at[1]],
        xerr=ends[0],
        yerr=ends[1],
        color=style.colour,
        marker=style.marker,
        markersize=5.5,
        linewidth=0,
        elinewidth=1.4,
        capsize=3,
        label=label,
    )


def error(number: Estimate) -> np.ndarray | None:
    """Return the (2, 1) distances to the ends of the interval, None where there is none."""
    interval = number.shown_interval
    if interval is None:
        return None
    low, high = interval
    return np.array([[max(number.value - low, 0)], [max(high - number.value, 0)]])


def say_empty(axes: Axes, text: str = "no finished cell") -> None:
    """Say in the middle of a panel why nothing is drawn in it."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, **EMPTY_TEXT)
    if not axes.has_data():
        axes.set_xticks([])
        axes.set_yticks([])


def legend_below(figure: Figure) -> None:
    """One legend for all panels, below them; each label once, in the order it was first drawn."""
    handles: dict[str, object] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if not handles:
        return
    # A symbol in math notation is about two letters wide.
    longest = max(len(re.sub(r"\$.*?\$", "mm", label)) for label in handles)
    fitting = int(figure.get_figwidth() / (_ENTRY_INCHES + _LEGEND_INCHES * longest))
    columns = min(max(fitting, 1), len(handles))
    # matplotlib fills columns first: reordered, so that people read the rows in order.
    entries = [entry for start in range(columns) for entry in list(handles.items())[start::columns]]
    figure.legend(
        [handle for _, handle in entries],
        [label for label, _ in entries],
        loc="outside lower center",
        ncols=columns,
        handlelength=3.2,
    )
