"""Parts of a user's that are wrong: refused with key, part and repair, before training where it
can be known before.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter, ValidationError
from scripted import TINY, cell_settings, make_probe, tiny_study

from grpo_replay.errors import ConfigError, TrainingError
from grpo_replay.methods.method import AnyLoss
from grpo_replay.parts import source_digest
from grpo_replay.study.axes import method_of
from grpo_replay.study.cells import expand
from grpo_replay.study.file import load_study
from grpo_replay.training.checkpoints import latest_complete

HERE = Path(__file__).parent
REPLAY = {"compose": "anchored", "unit": "rollout"}
CONTENT = yaml.safe_load(TINY.read_text())


def imported(path: str, **settings: Any) -> dict:
    return {"kind": "import", "path": path, "settings": settings}


def refusal(folder: Path, method: dict) -> str:
    """The one line that refuses a study with this method."""
    block = {"scales": ["s"], "methods": ["mine"], "seeds": [1]}
    study = {**CONTENT, "methods": {"mine": method}, "grid": [block]}
    (folder / "tiny.yaml").write_text(yaml.safe_dump(study))
    with pytest.raises(ConfigError) as error:
        expand(load_study(folder / "tiny.yaml"))
    message = str(error.value)
    assert message.startswith(f"{folder / 'tiny.yaml'}: methods.mine."), message
    assert "\n" not in message and len(message) < 700
    return message


@pytest.mark.parametrize(
    ("priority", "told"),
    [
        (imported("lab.nowhere:Recency"), "priority: path: lab.nowhere:Recency cannot be imported"),
        (imported("lab.recency:Recenc"), "lab.recency has no Recenc (did you mean 'Recency'?)"),
        (imported("lab.extremes:Extremes"), "is no subclass of grpo_replay.methods.priorities"),
        (imported("lab.recency:np"), "is no subclass of"),
        (imported("lab/recency.py"), "is no import path such as lab.recency:Recency"),
        (imported("lab.recency:Recency", half_lif=2.0), "priority.settings.half_lif: unknown key"),
        (imported("lab.recency:Recency", half_life=-2.0), "priority.settings.half_life: "),
        (imported("lab.recency:Recency", half_life="x"), "(found 'x')"),
        (imported("faulty:Weights"), "priority.settings.fault: missing"),
        ({"kind": "import"}, "path: None is no import path"),
        ({**imported("lab.recency:Recency"), "half_life": 2.0}, "unknown key 'half_life' beside"),
        ({"kind": "recency"}, "priority: "),
        ({"kind": "uniform", "alpha": 0.5}, "priority.alpha: unknown key"),
    ],
)
def test_a_wrong_import_is_one_line_with_its_place(
    tmp_path: Path, priority: dict, told: str
) -> None:
    message = refusal(tmp_path, {"replay": {**REPLAY, "priority": priority}})
    assert "methods.mine.replay.priority" in message and told in message


@pytest.mark.parametrize("axis", ["select", "advantage", "loss", "replay"])
def test_each_axis_takes_its_own_parts_alone(tmp_path: Path, axis: str) -> None:
    message = refusal(tmp_path, {axis: imported("lab.recency:Recency")})
    assert (
        f"methods.mine.{axis}: path: lab.recency:Recency is no subclass of grpo_replay." in message
    )


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("raises", "1 / 0", "ZeroDivisionError: division by zero"),
        ("exits", "raise SystemExit('stop')", "SystemExit: stop"),
        ("torn", "class X(", "SyntaxError"),
        ("lines", "raise RuntimeError('one\\ntwo')", "RuntimeError: one two"),
        ("lacks", "from os import nothing", "ImportError"),
        ("asks", "import os\nos.nothing", "AttributeError"),
    ],
)
def test_a_file_that_raises_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, told: str
) -> None:
    (tmp_path / f"user_{name}.py").write_text(f"{text}\n")
    monkeypatch.syspath_prepend(tmp_path)
    message = refusal(tmp_path, {"loss": imported(f"user_{name}:Mine")})
    start = f"methods.mine.loss: path: user_{name}:Mine cannot be imported from {Path.cwd()}: "
    assert start + told in message and message.endswith("mend the file or its name")


def test_a_selection_of_outside_is_held_to_the_group_size(tmp_path: Path) -> None:
    """Here the tiny study's: 4."""
    block = {"scales": ["s"], "methods": ["mine"], "seeds": [1]}
    method = {"select": imported("lab.extremes:Extremes", keep=5)}
    study = {**CONTENT, "methods": {"mine": method}, "grid": [block]}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(study))
    with pytest.raises(ConfigError, match="method mine, select.keep 5 is more than group_size 4"):
        load_study(tmp_path / "tiny.yaml")


def test_a_setting_of_a_part_of_outside_is_an_axis_of_the_grid(tmp_path: Path) -> None:
    half_lives = [1.0, 20.0, 5.0]
    vary = {"replay.priority.half_life": half_lives}
    block = {"scales": ["s"], "methods": ["mine"], "seeds": [1], "vary": vary}
    method = {"replay": {**REPLAY, "priority": imported("lab.recency:Recency")}}
    study = {**CONTENT, "methods": {"mine": method}, "grid": [block]}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(study))
    cells = [c for c in expand(load_study(tmp_path / "tiny.yaml")).values() if c.trained]
    key = "-replay.priority.half_life"
    names = [f"s/mine{text}-seed1" for text in (f"{key}1", "", f"{key}5")]
    assert [cell.cell for cell in cells] == names
    found = [method_of(cell).replay.priority for cell in cells]
    assert [priority.half_life for priority in found] == half_lives
    digests = {cell.parts["replay"]["priority"]["sha256"] for cell in cells}
    assert digests == {source_digest(type(found[0]))}


def test_the_digest_is_that_of_the_file_and_of_what_it_imports_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    files = {name: tmp_path / "own" / f"{name}.py" for name in ("part", "helper", "other")}
    files["helper"].write_text("SCALE = 2.0\n")
    files["other"].write_text("UNUSED = 1\n")
    text = (HERE / "lab" / "reinforce.py").read_text()
    files["part"].write_text(f"from own.helper import SCALE  # noqa: F401\n{text}")
    monkeypatch.syspath_prepend(tmp_path)
    part = TypeAdapter(AnyLoss).validate_python(imported("own.part:Reinforce"))
    before = source_digest(type(part))
    files["other"].write_text("UNUSED = 2\n")
    assert source_digest(type(part)) == before
    planned = part.identity()
    assert TypeAdapter(AnyLoss).validate_python(planned) == part
    files["helper"].write_text("SCALE = 3.0\n")
    assert source_digest(type(part)) != before
    with pytest.raises(ValidationError, match="has changed since the run was planned: plan it"):
        TypeAdapter(AnyLoss).validate_python(planned)


def weights(fault: str) -> dict:
    return {"replay": {**REPLAY, "priority": imported("faulty:Weights", fault=fault)}}


@pytest.mark.parametrize(
    ("method", "told"),
    [
        (weights("nan"), "replay.priority faulty:Weights gave a weight that is not finite"),
        (weights("infinite"), "replay.priority faulty:Weights gave a weight that is not finite"),
        (weights("negative"), "replay.priority faulty:Weights gave a negative weight"),
        (weights("short"), "replay.priority faulty:Weights gave weights of shape"),
        (weights("square"), "replay.priority faulty:Weights gave weights of shape"),
        (weights("zero"), "replay.priority faulty:Weights gave no weight above 0"),
        ({"select": imported("faulty:Places")}, "select faulty:Places gave positions [0, 4] in a"),
        ({"advantage": imported("faulty:Advantages", fault="nan")}, "an advantage that is not"),
        ({"advantage": imported("faulty:Advantages", fault="shape")}, "gave shape (4,) for (8, 4)"),
        ({"advantage": imported("faulty:Advantages", fault="metric")}, "tells own/number = inf"),
        ({"loss": imported("faulty:Losses", fault="nan")}, "not applied (loss faulty:Losses)"),
        ({"loss": imported("faulty:Losses", fault="rows")}, "loss faulty:Losses gave a tensor of"),
        ({"loss": imported("faulty:Losses", fault="detached")}, "gave a tensor of shape ()"),
        ({"loss": imported("faulty:Losses", fault="number")}, "loss faulty:Losses gave float"),
        ({"replay": imported("faulty:Batches")}, "replay faulty:Batches gave list where a Batch"),
    ],
)
def test_what_a_part_gives_is_looked_at(
    method: dict, told: str, tiny_model: Path, tmp_path: Path
) -> None:
    settings = cell_settings(tiny_study(method, steps=4, replay_warmup=1), "probe")
    probe = make_probe(settings, tiny_model, tmp_path, every=1)
    probe.trainer.args.save_total_limit = None
    with pytest.raises(TrainingError) as error:
        probe.trainer.train()
    message = str(error.value)
    assert told in message and "\n" not in message and "step" in message
    in_the_middle = "faulty:Weights" in told
    assert f"step {3 if in_the_middle else 1}" in message
    found = latest_complete(tmp_path)
    assert found == ((tmp_path / "checkpoint-4", 2) if in_the_middle else None)
