"""The plan: the paper's hours, measured hours where there are some, and what does not fit."""

import json
import re
from pathlib import Path

import pytest

from grpo_replay.errors import ConfigError
from grpo_replay.files import write_json
from grpo_replay.planning import plan_text as cost
from grpo_replay.planning.costs import cell_costs, duration, scale_hours, wall_hours, wall_time
from grpo_replay.planning.gpu_memory import (
    PAPERS_GPUS,
    GpuMemory,
    bytes_left,
    check_memory,
    memory_row,
    rounded,
    rows_held,
    state_bytes,
)
from grpo_replay.planning.job_limits import check_gpus
from grpo_replay.planning.messages import opening
from grpo_replay.planning.plan_text import text_bytes
from grpo_replay.results.progress import lost_files
from grpo_replay.study.cells import Cell, config_hash, expand, resolve, select, training_settings
from grpo_replay.study.config import Study
from grpo_replay.study.file import load_study

STUDIES = Path(__file__).parents[2] / "config" / "studies"


@pytest.fixture(scope="module")
def paper() -> Study:
    return load_study(STUDIES / "paper.yaml")


@pytest.fixture(scope="module")
def nano() -> Study:
    return load_study(STUDIES / "nano.yaml")


def plan_text(study: Study, cells: dict[str, Cell], results: Path, gpus: int) -> str:
    return cost.plan_text(study, cells, results, gpus, PAPERS_GPUS)


def rows(text: str) -> dict[str, list[str]]:
    """The lines of a plan by their first column, of hours rather than of bytes; columns are two
    spaces apart at least.
    """
    cut = (re.split(r"  +", line) for line in reversed(text.splitlines()))
    return {first: rest for first, *rest in cut}


def hours_left(study: Study, cells: dict[str, Cell], results: Path, workers: int) -> float:
    costs = cell_costs(study, cells.values(), results, scale_hours(study, results))
    return wall_time([c.left for c in costs], workers)


def train(study: Study, results: Path, name: str, seconds: float, steps: int) -> None:
    """What a training leaves that has made so many steps; one that made them all has ended."""
    folder = results / "cells" / name / "train"
    folder.mkdir(parents=True)
    lines = (json.dumps({"step": n, "perf/step_seconds": seconds}) + "\n" for n in range(steps))
    (folder / "metrics.jsonl").write_text("".join(lines))
    if steps == study.training.steps:
        (folder.parent / "model").mkdir()
        write_json(folder / "settings.json", training_settings(study, expand(study)[name]))


def finish(study: Study, results: Path, name: str, seconds: float | None) -> None:
    """What else a finished cell leaves, its answers drawn in so many seconds."""
    folder = results / "cells" / name
    write_json(folder / "samples" / "manifest.json", {"seconds": seconds} if seconds else {})
    scores = {"config_hash": config_hash(resolve(study, expand(study)[name]))}
    write_json(folder / "scores.json", scores)


def test_the_papers_hours_come_out(paper: Study, tmp_path: Path) -> None:
    text = plan_text(paper, expand(paper), tmp_path, gpus=8)
    assert "27 trained cells, 3 untrained, 0 finished" in text
    lines = rows(text)
    # 5 x 40 + 17 x 28 + 5 x 112, and 6 + 18 + 6 x 2 of sampling; fetching takes no GPU.
    assert lines["with --until train_policy"] == ["1,236", "1,236", "156 hours"]
    assert lines["total"] == ["1,272", "1,272", "175 hours"]
    assert lines["0.6B"] == ["4", "6 of 6", "0.1", "10", "1", "206", "206", "32 hours"]
    assert lines["table08"] == ["3", "3", "184", "184", "25 hours"]
    assert lines["table13"] == ["13", "13", "377", "377", "55 hours"]
    assert max(map(len, text.splitlines())) <= 160
    # 5,968 answers of 16,384 tokens, and 51,200 rollouts of 8,192, at 4 bytes a token.
    grpo = expand(paper)["4B/grpo-seed42"]
    assert text_bytes(paper, grpo) == 4 * (5_968 * 16_384 + 51_200 * 8_192)


def test_base_models_are_counted_once_a_scale(nano: Study, tmp_path: Path) -> None:
    lines = rows(plan_text(nano, expand(nano), tmp_path, gpus=0))
    # 15 cells of 0.013 h, 18 of 0.007 h, three base models of 0.02 h.
    assert lines["total"][:2] == ["0.381", "0.381"]
    assert lines["with --until train_policy"][:2] == ["0.255", "0.255"]
    cells = select(expand(nano), "s/ours-replay.tau_max1-*,s/grpo*")
    assert hours_left(nano, cells, tmp_path, workers=2) == pytest.approx(0.02 + 0.013 + 0.007)
    assert "about 2 minutes on 2 cores" in opening(nano, cells, tmp_path, 2, 0, trainings=6)
    (tmp_path / "base_models" / "s").mkdir(parents=True)
    assert hours_left(nano, cells, tmp_path, workers=2) == pytest.approx(0.013 + 0.007)
    assert rows(plan_text(nano, cells, tmp_path, gpus=0))["total"][:2] == ["0.04", "0.06"]


def test_a_scale_is_started_when_its_problems_are_chosen_too(tmp_path: Path) -> None:
    study = load_study(STUDIES / "smollm2.yaml")
    (scale,) = study.scales
    cells = select(expand(study), f"{scale}/base")
    (tmp_path / "base_models" / scale).mkdir(parents=True)
    (tmp_path / "warm_start" / scale).mkdir(parents=True)
    hours = study.scales[scale].hours_evaluate
    start = study.scales[scale].hours_base
    assert hours_left(study, cells, tmp_path, workers=2) == pytest.approx(start + hours)
    write_json(tmp_path / "data" / scale / "selected.jsonl", {})
    assert hours_left(study, cells, tmp_path, workers=2) == pytest.approx(hours)


def test_hours_in_words() -> None:
    found = [rounded(value, 4) for value in (0, 0.3812, 99.95, 1_236, 70_400, 999.96)]
    assert found == ["0", "0.3812", "99.95", "1,236", "70,400", "1,000"]
    assert [duration(hours) for hours in (0, 0.5, 2.4)] == ["1 minute", "30 minutes", "2 hours"]


def test_a_run_that_leaves_gpus_idle_takes_no_less_time(paper: Study, tmp_path: Path) -> None:
    assert wall_hours([(10.0, 1.0, 4)], workers=8) == 11
    assert wall_hours([(10.0, 1.0, 4)] * 3, workers=8) == 21
    assert wall_hours([(0.0, 1.0, 0)] * 3, workers=2) == 2
    assert wall_hours([], workers=2) == 0
    cells = select(expand(paper), "0.6B/grpo*")
    text = plan_text(paper, cells, tmp_path, gpus=8)
    assert "wall time on 8 GPUs" in text
    assert rows(text)["table01"] == ["1 of 12", "1", "41", "41", "11 hours"]
    assert {line[-8:] for line in text.splitlines() if line.startswith("table0")} == {"11 hours"}
    assert "about 11 hours on 8 GPUs" in opening(paper, cells, tmp_path, 1, 8, trainings=1)


def test_a_cell_that_is_trained_has_its_evaluation_left(paper: Study, tmp_path: Path) -> None:
    cells = select(expand(paper), "0.6B/grpo*")
    (name,) = cells
    assert hours_left(paper, cells, tmp_path, workers=4) == pytest.approx(11.1)
    train(paper, tmp_path, name, seconds=180.0, steps=200)
    assert hours_left(paper, cells, tmp_path, workers=4) == pytest.approx(1)
    lines = rows(plan_text(paper, cells, tmp_path, gpus=4))
    assert lines["total"] == ["1", "41", "60 minutes"]
    assert lines["with --until train_policy"] == ["0", "40", "-"]
    settings = tmp_path / "cells" / name / "train" / "settings.json"
    settings.write_text("{}")  # trained under other settings
    assert hours_left(paper, cells, tmp_path, workers=4) == pytest.approx(11.1)


def test_memory_of_each_gpu_is_stated(paper: Study) -> None:
    scales, memory = paper.scales, PAPERS_GPUS
    parameters = 4_022_468_096
    # Float32 weights, gradients and two moments, an eighth on each of 8 GPUs; vLLM's in bfloat16.
    assert state_bytes(scales["4B"], parameters) == 16 * parameters / 8
    assert memory_row(paper, scales["4B"], parameters, memory) == ["8.04 GB", "8.04 GB", "48 GB"]
    # Everything on every GPU, and the gradients once more where several processes sum them.
    whole = scales["4B"].model_copy(update={"sharding": "none"})
    assert state_bytes(whole, parameters) == 20 * parameters
    assert state_bytes(whole.model_copy(update={"gpus": 1}), parameters) == 16 * parameters
    left = memory_row(paper, whole, parameters, memory)[-1]
    assert left == "24.4 GB too much: set sharding: full"
    row = memory_row(paper, scales["1.7B"], 1_720_574_976, memory)
    assert row == ["34.4 GB", "3.44 GB", "21.6 GB"]
    large = GpuMemory(141e9, "declared")  # vLLM's share grows with it
    assert bytes_left(paper, whole, parameters, large) == 0.7 * 141e9 - 20 * parameters
    text = cost.plan_text(paper, expand(paper), Path("nowhere"), 8, large)
    assert "left of 141 GB" in text and "141 GB: declared." in text
    text = cost.plan_text(paper, expand(paper), Path("nowhere"), 8, GpuMemory(20e9, "declared"))
    assert "20.4 GB too much: set sharding: full" in text
    assert max(map(len, text.splitlines())) <= 160
    assert "holds at a time, at most (micro_batch x (1 + r)): 0.6B 6, 1.7B 8, 4B 3." in text


def test_replay_adds_to_the_rows_that_a_device_holds(paper: Study, nano: Study) -> None:
    assert [rows_held(nano, name) for name in nano.scales] == [48, 48, 48]  # r 0.5
    plain = [block.model_copy(update={"methods": ["grpo"], "vary": {}}) for block in nano.grid]
    assert rows_held(nano.model_copy(update={"grid": plain}), "xs") == 32
    # A query is a group of 8: at r 0.05, 8.4 queries are 8, and 67.2 rollouts 67.
    less = {"methods": ["ours"], "vary": {"replay.ratio": [0.05]}}
    small = [block.model_copy(update=less) for block in nano.grid]
    assert rows_held(nano.model_copy(update={"grid": small}), "xs") == 34
    pooled = [b.model_copy(update={"methods": ["uniform-pool"]}) for b in small]
    assert rows_held(nano.model_copy(update={"grid": pooled}), "xs") == 32


def test_training_that_cannot_fit_its_gpus_is_refused(paper: Study) -> None:
    check_memory(paper, paper.scales, PAPERS_GPUS, 8)
    small = GpuMemory(48e9, "the smallest of this machine's GPUs")
    message = (
        r"training 1.7B holds 34.4 GB .* on each GPU, 14.4 GB for vLLM .* a GPU has 48 GB \(the "
        r"smallest .*\), where the activations of \d+ rollouts have to fit too: set sharding: full "
        r"\(scales.1.7B\).*--resources gpu=4 gpu_gb=N"
    )
    with pytest.raises(ConfigError, match=message):
        check_memory(paper, paper.scales, small, 4)
    check_memory(paper, ["0.6B", "4B"], small, 8)  # what does not train 1.7B may start
    scale = paper.scales["1.7B"].model_copy(update={"gpus": 1})
    alone = paper.model_copy(update={"scales": {"1.7B": scale}})
    with pytest.raises(ConfigError, match="holds 27.5 GB .*: more gpus, sharding: full"):
        check_memory(alone, ["1.7B"], GpuMemory(24e9, "declared"), 1)
    with pytest.raises(ConfigError, match=r"training 4B .*: more gpus \(scales.4B\)"):
        check_memory(paper, ["4B"], GpuMemory(11e9, "declared"), 8)
    check_memory(load_study(STUDIES / "smollm2.yaml"), ["135M"], GpuMemory(1e9, "-"), 0)  # a CPU


def test_measured_runs_replace_the_estimates(paper: Study, tmp_path: Path) -> None:
    train(paper, tmp_path, "1.7B/grpo-seed42", seconds=90.0, steps=200)
    train(paper, tmp_path, "1.7B/ours-replay.tau_max1-seed42", seconds=9.0, steps=7)  # unended
    finish(paper, tmp_path, "1.7B/grpo-seed42", seconds=7_200.0)
    finish(paper, tmp_path, "1.7B/base", seconds=3_600.0)
    finish(paper, tmp_path, "4B/base", seconds=None)  # by a version that did not record them
    hours = scale_hours(paper, tmp_path)
    measured = hours["1.7B"]
    assert (measured.train, measured.evaluate) == (pytest.approx(5.0), pytest.approx(1.5))
    assert (hours["4B"].train, hours["4B"].evaluate) == (14, 2)
    costs = {c.cell.cell: c for c in cell_costs(paper, expand(paper).values(), tmp_path, hours)}
    assert costs["1.7B/ours-seed42"].train_hours == pytest.approx(5.0)
    lines = rows(plan_text(paper, expand(paper), tmp_path, gpus=8))
    # 16 cells left of 5 h on 4 GPUs and 1.5 h of sampling.
    assert lines["1.7B"][:6] == ["4", "16 of 18", "0.1", "5*", "1.5*", "344"]
    assert lines["4B"][2:5] == ["0.1", "14", "2"]


def test_runs_under_other_settings_are_no_measure(paper: Study, tmp_path: Path) -> None:
    train(paper, tmp_path, "1.7B/grpo-seed42", seconds=90.0, steps=200)
    finish(paper, tmp_path, "1.7B/grpo-seed42", seconds=7_200.0)
    training = paper.training.model_copy(update={"max_completion_tokens": 1024})
    hours = scale_hours(paper.model_copy(update={"training": training}), tmp_path)
    assert (hours["1.7B"].train, hours["1.7B"].evaluate) == (7, 1)
    evaluation = paper.evaluation.model_copy(update={"engine": "transformers"})
    hours = scale_hours(paper.model_copy(update={"evaluation": evaluation}), tmp_path)
    assert (hours["1.7B"].train, hours["1.7B"].evaluate) == (pytest.approx(5.0), 1)


def test_what_is_finished_costs_nothing_more(paper: Study, tmp_path: Path) -> None:
    cells = select(expand(paper), "0.6B/*")
    finish(paper, tmp_path, "0.6B/grpo-seed42", seconds=None)
    assert rows(plan_text(paper, cells, tmp_path, gpus=4))["0.6B"][1] == "5 of 6"
    assert "6 cells, 1 of them finished" in opening(paper, cells, tmp_path, 1, 4, trainings=5)


def test_only_what_begun_cells_lack_is_lost(paper: Study, tmp_path: Path) -> None:
    cells = expand(paper)
    assert lost_files(paper, cells, tmp_path) == []
    folder = tmp_path / "cells" / "4B/grpo-seed42"
    (folder / "train").mkdir(parents=True)
    (folder / "train" / "replay.parquet").touch()
    lost = lost_files(paper, cells, tmp_path)
    for file in ("model", "cell.json", "grades/aime26.parquet", "train/metrics.jsonl"):
        assert f"{folder}/{file}" in lost
    assert len(lost) == 16 and f"{folder}/train/replay.parquet" not in lost
    (tmp_path / "cells" / "4B/base").mkdir()
    assert len(lost_files(paper, cells, tmp_path)) == 16 + 12  # nothing of a training


def test_more_gpus_than_declared_or_there_are_refused(paper: Study) -> None:
    config = "study=paper results=/data"
    with pytest.raises(ConfigError, match="a job needs 8 GPUs and 4 are declared.*=/data`"):
        check_gpus(paper, 8, 4, 8, config)
    with pytest.raises(ConfigError, match="a job needs 8 GPUs and this machine offers 4"):
        check_gpus(paper, 8, 8, 4, config)
    check_gpus(paper, 4, 4, 4, config)
    with pytest.raises(ConfigError, match="8 GPUs are declared and this machine offers 4"):
        check_gpus(paper, 4, 8, 4, config)
    check_gpus(paper, 0, 8, 0, config)  # nothing left to run there


def test_the_announcement_counts_gpus(paper: Study, tmp_path: Path) -> None:
    text = opening(paper, expand(paper), tmp_path, 64, 8, trainings=1)
    assert "30 cells, 0 of them finished, 1 to be trained in this run; about 175 hours" in text
