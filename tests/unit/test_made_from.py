import os
from pathlib import Path

import pytest

from grpo_replay.machine import made_from as module
from grpo_replay.machine.made_from import STAMP, Step, made_from, restore

SETTINGS = {"k": 4}


@pytest.fixture
def steps(tmp_path: Path) -> list[Step]:
    """A model folder, what was made from it, and what was made from that; times of a copy."""
    start, model, scores = tmp_path / "start", tmp_path / "model", tmp_path / "scores.json"
    for folder in (start, model):
        folder.mkdir()
        (folder / "weights").write_text(folder.name)
        (folder / STAMP).touch()
    log = tmp_path / "metrics.jsonl"
    for path in (log, scores):
        path.write_text(path.name)
    chain = [
        Step([start], [model, log], lambda: SETTINGS),
        Step([model, log], [scores], lambda: SETTINGS),
    ]
    for step in chain:
        with made_from(map(str, step.inputs), str(step.outputs[0]), SETTINGS):
            pass
    for time, path in enumerate([scores, model / STAMP, log, start / STAMP], start=1):
        os.utime(path, (time, time))
    return chain


def times(step: Step) -> list[float]:
    """What Snakemake takes for the times of the outputs."""
    return [(p / STAMP if p.is_dir() else p).stat().st_mtime for p in step.outputs]


def test_what_is_as_recorded_becomes_newer_than_its_inputs(steps: list[Step]) -> None:
    assert all(step.is_out_of_date() for step in steps)
    restore(steps)
    assert [times(step) for step in steps] == [[4, 4], [4]]


def change_input(step: Step) -> None:
    (step.inputs[0] / "weights").write_text("other")


def lose_record(step: Step) -> None:
    step.record.unlink()


def tear_record(step: Step) -> None:
    step.record.write_text("{")


def lose_output(step: Step) -> None:
    step.outputs[1].unlink()


@pytest.mark.parametrize("change", [change_input, lose_record, tear_record])
def test_what_is_not_as_recorded_keeps_its_times(steps: list[Step], change) -> None:
    change(steps[0])
    restore(steps)
    assert times(steps[0]) == [2, 3]


def test_other_settings_keep_their_times(steps: list[Step]) -> None:
    first = Step(steps[0].inputs, steps[0].outputs, lambda: {"k": 5})
    restore([first])
    assert times(first) == [2, 3]


def test_a_step_that_lacks_an_output_is_left(steps: list[Step]) -> None:
    lose_output(steps[0])
    restore(steps[:1])
    assert (steps[0].outputs[0] / STAMP).stat().st_mtime == 2


def test_nothing_is_summed_where_times_are_right(
    steps: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    restore(steps)

    def refuse(path: Path) -> str:
        raise AssertionError(path)

    monkeypatch.setattr(module, "folder_digest", refuse)
    restore(steps)
    os.utime(steps[0].inputs[0] / STAMP, (9, 9))
    with pytest.raises(AssertionError):  # so the digest is asked of this module
        restore(steps)


def test_a_link_counts_as_the_newer_of_itself_and_its_target(steps: list[Step]) -> None:
    restore(steps)
    place = steps[0].inputs[0]
    link = place.rename(place.with_name("elsewhere"))
    place.symlink_to(link)  # made now, so newer than the outputs
    assert steps[0].is_out_of_date()
    restore(steps)
    assert not any(step.is_out_of_date() for step in steps)


def test_a_job_that_fails_leaves_no_record(steps: list[Step]) -> None:
    first = steps[0]
    job = made_from(map(str, first.inputs), str(first.outputs[0]), SETTINGS)
    with pytest.raises(ValueError, match="in the middle"), job:
        raise ValueError("in the middle")
    assert not first.record.exists()


def test_the_record_is_of_what_the_job_read(steps: list[Step]) -> None:
    first = steps[0]
    with made_from(map(str, first.inputs), str(first.outputs[0]), SETTINGS):
        change_input(first)
    restore(steps)
    assert times(first) == [2, 3]


def test_a_study_under_another_name_keeps_its_records(steps: list[Step], tmp_path: Path) -> None:
    start = tmp_path / "start"
    moved = Step([start.rename(tmp_path / "moved")], steps[0].outputs, lambda: SETTINGS)
    restore([moved])
    assert times(moved) == [4, 4]


def test_a_job_without_inputs_leaves_no_record(tmp_path: Path) -> None:
    with made_from([], str(tmp_path / "problems.jsonl"), SETTINGS):
        pass
    assert not list(tmp_path.iterdir())
