"""A checkpoint that is not what its marker says is told and left alone; the run ends the same."""

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted import TINY, Script, cell_settings, tiny_study
from test_kill import assert_same_result

from grpo_replay.errors import GrpoReplayWarning
from grpo_replay.study.config import Checkpoints
from grpo_replay.study.file import load_study
from grpo_replay.tasks.problems import make_problems
from grpo_replay.training import run_training

STEPS = 3
FILES = (
    *("model.safetensors", "optimizer.pt", "rng_state.pth", "scheduler.pt", "trainer_state.json"),
    *("parts.safetensors", "parts.json", "config.json"),
)


class Seen:
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        self.kept, self.steps = 0, []

    def resumed(self, records: list[dict]) -> None:
        self.kept = len(records)

    def step(self, record: dict) -> None:
        self.steps.append(record["step"])


def train(model: Path, folder: Path) -> Seen:
    """Train a cell of three steps, a checkpoint a step; the last two are kept."""
    problems, seen = folder / "problems.jsonl", Seen()
    if not problems.exists():
        make_problems(load_study(TINY).problems, problems)
    settings = cell_settings(tiny_study(steps=STEPS, replay_warmup=1), "ours", tau_max=2)
    paths = (model, problems, folder / "cell", folder / "checkpoints")
    run_training.train_policy(settings, *paths, Checkpoints(every=1, keep=True), watchers=[seen])
    return seen


@pytest.fixture(autouse=True)
def scripted_rollouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every trainer take scripted rollouts."""
    build = run_training.build_trainer

    def build_scripted(*args: Any, **kwargs: Any):
        return build(*args, rollout_func=Script(), **kwargs)

    monkeypatch.setattr(run_training, "build_trainer", build_scripted)


@pytest.fixture(scope="module")
def whole(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that nothing has happened to."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        scripted_rollouts.__wrapped__(patch)
        assert train(tiny_model, folder).steps == [1, 2, 3]
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """Return a copy of it, without what was published."""
    folder = tmp_path / "run"
    shutil.copytree(whole, folder, symlinks=True)
    shutil.rmtree(folder / "cell")
    return folder


def checkpoint(folder: Path, update: int) -> Path:
    (found,) = (folder / "checkpoints").glob(f"*/checkpoint-{update}")
    return found


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file: Path) -> None:
    """Change one bit in the middle: the size stays."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


DAMAGES: list[tuple[Callable[[Path], None], str]] = [
    *((cut, name) for name in FILES),
    *((flip, name) for name in ("model.safetensors", "optimizer.pt", "trainer_state.json")),
    *((Path.unlink, name) for name in ("model.safetensors", "optimizer.pt", "parts.json")),
    (cut, "whole.json"),
]


@pytest.mark.parametrize(("damage", "name"), DAMAGES)
def test_the_newest_whole_one_is_taken(
    damage: Callable, name: str, tiny_model: Path, whole: Path, copy: Path
) -> None:
    newest = checkpoint(copy, 2 * STEPS)
    damage(newest / name)
    left = {file.name for file in newest.iterdir()}
    told = rf"damaged-checkpoint-6: {name} .*: the training goes on from step 2$"
    with pytest.warns(GrpoReplayWarning, match=told) as caught:
        seen = train(tiny_model, copy)
    assert sum(issubclass(w.category, GrpoReplayWarning) for w in caught) == 1
    assert (seen.kept, seen.steps) == (2, [3])
    assert_same_result(copy, whole)
    aside = newest.with_name("damaged-checkpoint-6")
    assert {file.name for file in aside.iterdir()} == left  # nothing is deleted
    with warnings.catch_warnings():
        warnings.simplefilter("error", GrpoReplayWarning)
        assert train(tiny_model, copy).steps == []  # it is told once


def test_without_a_whole_one_the_run_begins_anew(tiny_model: Path, whole: Path, copy: Path) -> None:
    for update in (4, 6):
        cut(checkpoint(copy, update) / "model.safetensors")
    told = r"damaged-checkpoint-6: .*; .*damaged-checkpoint-4: .*: the training begins anew$"
    with pytest.warns(GrpoReplayWarning, match=told):
        assert train(tiny_model, copy).steps == [1, 2, 3]
    assert_same_result(copy, whole)


@pytest.mark.parametrize(("name", "steps"), [("metrics", [3]), ("rollouts", [3])])
def test_records_that_lost_lines_count_as_damage(
    name: str, steps: list[int], tiny_model: Path, whole: Path, copy: Path
) -> None:
    """Else the finished cell would lack steps."""
    (log,) = (copy / "checkpoints").glob(f"*/records/{name}.jsonl")
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(line for line in lines if json.loads(line)["step"] < STEPS))
    with pytest.warns(GrpoReplayWarning, match=rf"records/{name}.jsonl has \d+ bytes of \d+"):
        assert train(tiny_model, copy).steps == steps
    assert_same_result(copy, whole)


def test_a_damaged_one_is_told_apart_from_an_earlier_damaged_one(
    tiny_model: Path, whole: Path, copy: Path
) -> None:
    for _ in range(2):
        cut(checkpoint(copy, 6) / "optimizer.pt")
        with pytest.warns(GrpoReplayWarning, match="goes on from step 2"):
            train(tiny_model, copy)
    run = checkpoint(copy, 6).parent
    assert {p.name for p in run.glob("damaged-*")} == {
        "damaged-checkpoint-6",
        "damaged-checkpoint-6-2",
    }
    assert_same_result(copy, whole)


def test_a_marker_of_an_earlier_version_is_believed(
    tiny_model: Path, whole: Path, copy: Path
) -> None:
    (checkpoint(copy, 6) / "whole.json").write_text('{"step": 3}')
    with warnings.catch_warnings():
        warnings.simplefilter("error", GrpoReplayWarning)
        seen = train(tiny_model, copy)
    assert (seen.kept, seen.steps) == (3, [])
    assert_same_result(copy, whole)
