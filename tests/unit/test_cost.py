"""The plan: the paper's hours, measured hours where there are some, and what does not fit."""

import json
from pathlib import Path

import pytest

from grpo_replay.config import Study
from grpo_replay.errors import ConfigError
from grpo_replay.grid import config_hash, expand, resolve, select, training_settings
from grpo_replay.plan import check_gpus, duration, hours_left, lost_files, opening, wall_hours
from grpo_replay.reporting.cost import cell_costs, measured_hours, plan_text, text_bytes
from grpo_replay.reporting.memory import memory_row, state_bytes
from grpo_replay.reporting.paper_tables.shared_cells import tables_of
from grpo_replay.study_file import load_study

STUDIES = Path(__file__).parents[2] / "config" / "studies"


@pytest.fixture(scope="module")
def paper() -> Study:
    return load_study(STUDIES / "paper.yaml")


def write_run(study: Study, results: Path, cell: str, seconds: float, steps: int) -> None:
    folder = results / "cells" / cell / "train"
    folder.mkdir(parents=True)
    lines = (json.dumps({"step": n, "perf/step_seconds": seconds}) + "\n" for n in range(steps))
    (folder / "metrics.jsonl").write_text("".join(lines))


def test_the_papers_hours_come_out(paper: Study, tmp_path: Path) -> None:
    costs = cell_costs(paper, expand(paper).values(), tmp_path, measured={})
    assert sum(c.train_hours * c.gpus for c in costs) == 1236
    text = plan_text(paper, expand(paper), tmp_path, gpus=8)
    assert "27 trained cells, 3 untrained, 0 finished" in text
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert lines["total"][1:] == ["1,272", "1,272", "175", "hours"]
    assert lines["table08"][1:] == ["3", "3", "184", "25", "hours"]
    assert lines["training"][1:] == ["alone", "1,236", "1,236", "156", "hours"]
    # 5,968 answers of 16,384 tokens, and 51,200 rollouts of 8,192, at 4 bytes a token.
    grpo = expand(paper)["4B/grpo-seed42"]
    assert text_bytes(paper, grpo) == 4 * (5_968 * 16_384 + 51_200 * 8_192)


def test_hours_in_words() -> None:
    assert [duration(hours) for hours in (0, 0.5, 2.4)] == ["1 minute", "30 minutes", "2 hours"]


def test_a_run_that_leaves_gpus_idle_takes_no_less_time(paper: Study, tmp_path: Path) -> None:
    assert wall_hours([(10.0, 1.0, 4)], workers=8) == 11
    assert wall_hours([(10.0, 1.0, 4)] * 3, workers=8) == 21
    assert wall_hours([(0.0, 1.0, 0)] * 3, workers=2) == 2
    assert wall_hours([], workers=2) == 0
    cells = select(expand(paper), "0.6B/grpo*")
    text = plan_text(paper, cells, tmp_path, gpus=8)
    assert "wall time on 8 GPUs" in text and "table01        1      1           41" in text
    assert {line[-8:] for line in text.splitlines() if line.startswith("table")} == {"11 hours"}
    assert "about 11 hours on 8 GPUs" in opening(paper, cells, tmp_path, jobs=1, declared_gpus=8)


def test_a_cell_that_is_trained_has_its_evaluation_left(paper: Study, tmp_path: Path) -> None:
    cells = select(expand(paper), "0.6B/grpo*")
    (cell,) = cells.values()
    write_run(paper, tmp_path, cell.cell, seconds=180.0, steps=200)
    settings = tmp_path / "cells" / cell.cell / "train" / "settings.json"
    settings.write_text(json.dumps(training_settings(paper, cell)))
    assert hours_left(paper, cells.values(), tmp_path, workers=4) == pytest.approx(11.1)
    (tmp_path / "cells" / cell.cell / "model").mkdir()
    assert hours_left(paper, cells.values(), tmp_path, workers=4) == pytest.approx(1.1)
    lines = plan_text(paper, cells, tmp_path, gpus=4).splitlines()
    assert lines[4].split() == ["total", "1", "41", "60", "minutes"]
    assert lines[5].split() == ["training", "alone", "0", "40", "-"]
    settings.write_text("{}")  # trained under other settings
    assert hours_left(paper, cells.values(), tmp_path, workers=4) == pytest.approx(11.1)


def test_memory_of_each_gpu_is_stated(paper: Study) -> None:
    scales = paper.scales
    parameters = 4_022_468_096
    # Float32 weights, gradients and two moments, an eighth on each of 8 GPUs; vLLM's in bfloat16.
    assert state_bytes(scales["4B"], parameters) == 16 * parameters / 8
    assert memory_row(paper, scales["4B"], parameters) == ["8.04 GB", "8.04 GB", "48 GB"]
    # Everything on every GPU, and the gradients once more where several processes sum them.
    whole = scales["4B"].model_copy(update={"sharding": "none"})
    assert state_bytes(whole, parameters) == 20 * parameters
    assert state_bytes(whole.model_copy(update={"gpus": 1}), parameters) == 16 * parameters
    left = memory_row(paper, whole, parameters)[-1]
    assert left == "does not fit, 24.4 GB too much: set sharding: full"
    assert memory_row(paper, scales["1.7B"], 1_720_574_976) == ["34.4 GB", "3.44 GB", "21.6 GB"]


def test_every_table_has_the_papers_number_of_trained_cells(paper: Study) -> None:
    tables = [name for c in expand(paper).values() if c.trained for name in tables_of(c)]
    wanted = {1: 12, 2: 4, 3: 9, 4: 6, 5: 12, 6: 6, 8: 3, 9: 5, 10: 3, 11: 3, 12: 6, 13: 12}
    assert {n: tables.count(f"table{n:02d}") for n in wanted} == wanted


def test_measured_runs_replace_the_estimate(paper: Study, tmp_path: Path) -> None:
    cells = expand(paper)
    write_run(paper, tmp_path, "1.7B/grpo-seed42", seconds=90.0, steps=200)
    write_run(paper, tmp_path, "1.7B/ours-tau1-r0.5-a0.5-seed42", seconds=9.0, steps=7)  # unended
    measured = measured_hours(paper, tmp_path)
    assert measured == {"1.7B": pytest.approx(5.0)}
    costs = {c.cell.cell: c for c in cell_costs(paper, cells.values(), tmp_path, measured)}
    assert costs["1.7B/ours-tau10-r0.5-a0.5-seed42"].train_hours == pytest.approx(5.0)
    assert costs["4B/grpo-seed42"].train_hours == 14
    assert "5*" in plan_text(paper, cells, tmp_path, gpus=8)


def test_what_is_finished_costs_nothing_more(paper: Study, tmp_path: Path) -> None:
    cells = select(expand(paper), "0.6B/*")
    folder = tmp_path / "cells" / "0.6B/grpo-seed42"
    folder.mkdir(parents=True)
    scores = {"config_hash": config_hash(resolve(paper, cells["0.6B/grpo-seed42"]))}
    (folder / "scores.json").write_text(json.dumps(scores))
    assert "5 of 6" in plan_text(paper, cells, tmp_path, gpus=4)


def test_only_what_begun_cells_lack_is_lost(paper: Study, tmp_path: Path) -> None:
    cells = expand(paper)
    assert lost_files(paper, cells, tmp_path) == []
    folder = tmp_path / "cells" / "4B/grpo-seed42"
    (folder / "train").mkdir(parents=True)
    (folder / "train" / "replay.parquet").touch()
    lost = lost_files(paper, cells, tmp_path)
    for file in ("model", "cell.json", "grades/aime26.parquet", "train/metrics.jsonl"):
        assert f"cells/4B/grpo-seed42/{file}" in lost
    assert len(lost) == 16 and "cells/4B/grpo-seed42/train/replay.parquet" not in lost
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
    text = opening(paper, expand(paper), tmp_path, jobs=64, declared_gpus=8)
    assert "30 cells, 0 of them finished; about 175 hours on 8 GPUs" in text
