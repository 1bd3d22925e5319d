"""Each module that decides results stands under a version, which is raised when it changes."""

import json
import re
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic.fields import FieldInfo

from grpo_replay.methods.losses import Clipped
from grpo_replay.methods.method import RECORDED_DEFAULTS
from grpo_replay.study.config import Training
from grpo_replay.tasks.config import HubFile

REPOSITORY = Path(__file__).parents[2]
TOOL = runpy.run_path(str(REPOSITORY / "tools" / "record_versions.py"))


def test_what_decides_results_is_as_recorded() -> None:
    """Where this fails, its message says what changed, which version to raise and what to run."""
    advice = TOOL["advice"](TOOL["recorded"](), TOOL["present"]())
    assert not advice, f"\n{advice}"


def test_every_pattern_names_a_module() -> None:
    package = REPOSITORY / "src" / "grpo_replay"
    for patterns in TOOL["MODULES"].values():
        for pattern in patterns:
            assert list(package.glob(pattern)), pattern


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package and its record, to be edited."""
    shutil.copytree(REPOSITORY / "src", tmp_path / "src")
    (tmp_path / "tools").mkdir()
    shutil.copy(REPOSITORY / TOOL["RECORD"], tmp_path / TOOL["RECORD"])
    return tmp_path


def edit(path: Path, change: Callable[[str], str]) -> None:
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))


def advice(copy: Path) -> str:
    return TOOL["advice"](TOOL["recorded"](copy), TOOL["present"](copy))


def test_docstrings_comments_and_layout_change_nothing(copy: Path) -> None:
    metrics = copy / "src/grpo_replay/statistics/metrics.py"
    words = re.compile(r'""".*?"""', re.DOTALL)
    edit(metrics, lambda text: words.sub('"""Other words."""', text) + "\n# and a comment\n")
    edit(metrics, lambda text: text.replace("\n    return", "\n\n    # so\n    return"))
    assert advice(copy) == ""


@pytest.mark.parametrize(
    ("module", "version"),
    [
        ("methods/losses.py", "ALGORITHM_VERSION"),
        ("training/trainer.py", "ALGORITHM_VERSION"),
        ("models/warm_start.py", "MODEL_VERSION"),
        ("tasks/clock.py", "PROBLEMS_VERSION"),
        ("evaluation/engines.py", "SAMPLER_VERSION"),
        ("tasks/math/rules.py", "GRADER_VERSION"),
        ("statistics/intervals.py", "SCORING_VERSION"),
    ],
)
def test_changed_code_asks_for_its_version_and_no_other(
    copy: Path, module: str, version: str
) -> None:
    edit(copy / "src/grpo_replay" / module, lambda text: text + "\nTHIS = 1\n")
    [line] = advice(copy).splitlines()
    assert f"{module} has changed" in line and f"raise {version} in src/grpo_replay/study" in line
    assert "run `python tools/record_versions.py`" in line


def test_a_new_method_and_a_lost_module_are_seen(copy: Path) -> None:
    (copy / "src/grpo_replay/methods/other.py").write_text("X = 1\n")
    (copy / "src/grpo_replay/statistics/intervals.py").unlink()
    told = advice(copy)
    assert "methods/other.py is new" in told and "statistics/intervals.py is gone" in told


def raise_scoring(copy: Path, number: int) -> None:
    versions = copy / TOOL["VERSIONS"]
    edit(versions, lambda t: t.replace("SCORING_VERSION = 1", f"SCORING_VERSION = {number}"))


def test_a_change_is_recorded_under_a_raised_version_alone(copy: Path) -> None:
    record = copy / TOOL["RECORD"]
    before = record.read_text()
    edit(copy / "src/grpo_replay/statistics/metrics.py", lambda text: text + "\nTHIS = 1\n")
    with pytest.raises(SystemExit, match="statistics/metrics.py has changed\nRaise it in"):
        TOOL["main"]([], copy)
    assert record.read_text() == before
    raise_scoring(copy, 2)
    assert advice(copy) == "SCORING_VERSION is raised and not recorded: run " + (
        "`python tools/record_versions.py`"
    )
    TOOL["main"]([], copy)
    assert advice(copy) == ""
    assert json.loads(record.read_text())["SCORING_VERSION"]["version"] == 2


def test_same_results_records_without_a_raise(copy: Path) -> None:
    edit(copy / "src/grpo_replay/statistics/metrics.py", lambda text: text + "\nTHIS = 1\n")
    TOOL["main"](["--same-results"], copy)
    assert advice(copy) == ""
    assert TOOL["recorded"](copy)["SCORING_VERSION"]["version"] == 1


def test_a_version_is_never_lowered(copy: Path) -> None:
    raise_scoring(copy, 0)
    with pytest.raises(SystemExit, match="SCORING_VERSION was 1 and is 0: a version is never"):
        TOOL["main"](["--same-results"], copy)


# --- defaults ---


def test_a_changed_default_asks_for_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no part of an identity: cells that leave it out would keep results of the old one."""
    for section, key, value in ((Clipped, "low", 0.3), (HubFile, "id_column", "id")):
        monkeypatch.setattr(section.model_fields[key], "default", value)
    told = TOOL["advice"](TOOL["recorded"](), TOOL["present"]())
    algorithm, problems = sorted(told.splitlines())
    assert "the default of methods.losses:Clipped.low was 0.2 and is 0.3: where" in algorithm
    assert "raise ALGORITHM_VERSION in" in algorithm
    assert "tasks.config:HubFile.id_column was None and is 'id': where" in problems
    assert "raise PROBLEMS_VERSION in" in problems


def test_a_new_default_is_to_be_recorded_and_raises_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(Training.model_fields, "other", FieldInfo(annotation=int, default=1))
    old, new = TOOL["recorded"](), TOOL["present"]()
    assert TOOL["refusals"](old, new) == []
    assert "ALGORITHM_VERSION 1 or its list of defaults is not the one recorded" in (
        TOOL["advice"](old, new)
    )


def test_every_setting_of_a_part_has_the_default_that_names_its_cells() -> None:
    """A setting that lacks there would rename cells when its default changes."""
    recorded = TOOL["recorded"]()["ALGORITHM_VERSION"]["defaults"]
    settings = {
        key.rpartition(".")[2]
        for key, value in recorded.items()
        if key.startswith("methods.") and not isinstance(value, dict)
    }
    assert settings == set(RECORDED_DEFAULTS)
