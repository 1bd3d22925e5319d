"""Every figure is drawn from real files: whole, with missing cells, with none, and repeated."""

import json
import shutil
from contextlib import contextmanager

import pytest
from PIL import Image
from reporting_inputs import random_results, small_study, write_metrics

from grpo_replay import grid
from grpo_replay.reporting import figures, labels
from grpo_replay.reporting.scores import read_scores

FIGURES = ["accuracy_figure", "tau_max_figure", "training_figure", "clip_figure"]


@contextmanager
def kept_axes():
    """Collect the (rows, columns) axes of every figure that is drawn meanwhile."""
    kept, original = [], figures.panels

    @contextmanager
    def keeping(*args, **kwargs):
        with original(*args, **kwargs) as (figure, axes):
            kept.append(axes)
            yield figure, axes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "panels", keeping)
        yield kept


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    random_results(small_study(), folder)
    return folder


@pytest.fixture(scope="module")
def drawings(results):
    """The axes of each figure of whole results, drawn once as `<name>/one`."""
    with kept_axes() as kept:
        for name in FIGURES:
            getattr(figures, name)(small_study(), results, results / name / "one")
    return dict(zip(FIGURES, kept, strict=True))


@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_drawn_and_repeats_byte_for_byte(results, drawings, name):
    getattr(figures, name)(small_study(), results, results / name / "two")
    for suffix in ("png", "svg"):
        first = results / name / f"one.{suffix}"
        assert first.read_bytes() == (results / name / f"two.{suffix}").read_bytes()
    with Image.open(results / name / "one.png") as picture:
        assert picture.size[0] >= 700 and picture.size[1] >= 400
        assert picture.convert("L").getextrema() == (0, 255)
    files = sorted(path.name for path in (results / name).iterdir())
    assert files == ["one.png", "one.svg", "two.png", "two.svg"]


@pytest.mark.parametrize("name", FIGURES)
def test_panels_without_finished_cells_say_so(tmp_path, name):
    random_results(small_study(), tmp_path, left_out=tuple(grid.expand(small_study())))
    with kept_axes() as kept:
        getattr(figures, name)(small_study(), tmp_path, tmp_path / name)
    for axes in kept[0].flat:
        assert "no finished cell" in [text.get_text() for text in axes.texts]
    assert (tmp_path / f"{name}.png").stat().st_size > 0


@pytest.mark.parametrize("name", FIGURES)
def test_axes_are_labelled(drawings, name):
    axes = drawings[name]
    assert all(panel.get_ylabel() for panel in axes[:, 0])
    unit = "(%)" if name == "accuracy_figure" else "step"
    assert all(unit in panel.get_xlabel() for panel in axes[-1])


def test_points_are_the_numbers_of_the_scores(results, drawings):
    scores = read_scores(results / "scores.parquet")
    mean = scores[scores["cell"] == "s/ours-tau60-r0.5-a0.5-seed42"]["avg_at_k"].mean()
    line = drawings["tau_max_figure"][0, 0].containers[0].lines[0]
    assert line.get_ydata()[3] == pytest.approx(mean)


def test_a_method_looks_the_same_everywhere(drawings):
    expected = labels.method_style(small_study(), "ours").colour
    curves = {line.get_label(): line for line in drawings["training_figure"][0, 0].get_lines()}
    point = drawings["tau_max_figure"][0, 0].containers[0].lines[0]
    assert curves["ours"].get_color() == point.get_color() == expected


def test_styles_differ_in_more_than_colour():
    study = small_study()
    styles = [labels.method_style(study, name) for name in ("base", *study.methods)]
    assert len({style.colour for style in styles}) == len(styles)
    assert len({style.marker for style in styles}) == len(styles)


def test_missing_metrics_leave_the_other_lines(results, tmp_path):
    shutil.copytree(results, tmp_path / "copy")
    (tmp_path / "copy" / "cells" / "s/grpo-seed42" / "train" / "metrics.jsonl").unlink()
    with kept_axes() as kept:
        figures.training_figure(small_study(), tmp_path / "copy", tmp_path / "training")
    names = [line.get_label() for line in kept[0][0, 1].get_lines()]
    assert "GRPO" not in names and "ours" in names


def test_a_run_that_replayed_nothing_is_not_called_missing(tmp_path):
    study = small_study()
    random_results(study, tmp_path)
    for path in tmp_path.glob("cells/*/*/train/metrics.jsonl"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        write_metrics(path.parent.parent, [r | {"clip_ratio/replay": None} for r in records])
    with kept_axes() as kept:
        figures.clip_figure(study, tmp_path, tmp_path / "clip")
    replayed = kept[0][0, 1]
    assert [text.get_text() for text in replayed.texts] == ["no such token was trained on"]
