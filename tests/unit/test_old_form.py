"""A study file of the form before parts gets one message, which shows its new form."""

from pathlib import Path

import pytest
import yaml

from grpo_replay.errors import ConfigError
from grpo_replay.study.cells import expand
from grpo_replay.study.file import load_study
from grpo_replay.study.old_form import old_form

TINY = Path(__file__).parents[1] / "fixtures" / "studies" / "tiny.yaml"
CONTENT = yaml.safe_load(TINY.read_text())
OLD_METHODS = {
    "grpo": {"composition": "none"},
    "uniform-pool": {"composition": "pool", "unit": "query", "priority": "uniform"},
    "sigma_g-pool": {"composition": "pool", "unit": "query", "priority": "sigma_g"},
    "ours": {"composition": "anchored", "unit": "rollout", "priority": "abs_advantage"},
}
ONE = {"replay_ratio": [0.5], "alpha": [0.5], "seeds": [42]}
OLD_GRID = [
    {"scales": ["s"], "methods": list(OLD_METHODS), "tau_max": [10], **ONE},
    {"scales": ["s"], "methods": ["ours"], "tau_max": [1, 10], **ONE},
]
OLD_TRAINING = {"clip_low": 0.2, "clip_high": 0.28, "dual_clip": 10.0, "advantage_epsilon": 1e-6}
OLD_TRAINING |= {"priority_epsilon": 1e-6, "replay_warmup": 1, "buffer_capacity": 30_000}


def message(folder: Path, content: dict) -> str:
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError) as error:
        load_study(path)
    text = str(error.value)
    assert text.startswith(f"{path}: ") and "Traceback" not in text
    return text


def old_study(**training: object) -> dict:
    old = {**CONTENT["training"], **OLD_TRAINING, **training}
    return {**CONTENT, "methods": OLD_METHODS, "grid": OLD_GRID, "training": old}


def rewritten(folder: Path, content: dict):
    """The study, with what the message says written into its file."""
    lines = message(folder, content).splitlines()
    shown = yaml.safe_load("\n".join(lines[1:-1]))
    assert lines[-1].startswith("and remove from training: clip_low, clip_high, dual_clip, ")
    removed = lines[-1].rpartition(": ")[2].split(", ")
    training = {k: v for k, v in content["training"].items() if k not in removed}
    (folder / "tiny.yaml").write_text(yaml.safe_dump({**content, **shown, "training": training}))
    return load_study(folder / "tiny.yaml")


def test_an_old_study_is_told_its_new_form(tmp_path: Path) -> None:
    told = message(tmp_path, old_study()).splitlines()[0]
    assert "methods.grpo.composition" in told and "of an earlier form of studies" in told
    assert expand(rewritten(tmp_path, old_study())) == expand(load_study(TINY))


def test_settings_of_old_become_those_of_the_parts(tmp_path: Path) -> None:
    other = old_study(clip_high=0.3, advantage_epsilon=1e-4, priority_epsilon=1e-3)
    methods = rewritten(tmp_path, other).methods
    assert {(m.loss.high, m.advantage.eps) for m in methods.values()} == {(0.3, 1e-4)}
    assert (
        methods["ours"].replay.priority.eps == methods["sigma_g-pool"].replay.priority.eps == 1e-3
    )


def test_methods_vary_what_they_have(tmp_path: Path) -> None:
    """Of old, a method without a store passed over the axes of replay."""
    block = {**OLD_GRID[0], "tau_max": [1, 10], "alpha": [0.5, 1.0]}
    cells = expand(rewritten(tmp_path, {**old_study(), "grid": [block]}))
    varied = {name: {path for c in cells.values() if c.method == name for path in c.varied}
              for name in OLD_METHODS}  # fmt: skip
    both = {"replay.tau_max", "replay.priority.alpha"}
    assert varied == {"grpo": set(), "uniform-pool": {"replay.tau_max"}, "sigma_g-pool": both,
                      "ours": both}  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        {**CONTENT, "grid": [{**CONTENT["grid"][0], "tau_max": [1]}]},
        {**CONTENT, "training": {**CONTENT["training"], "clip_low": 0.2}},
        {**CONTENT, "methods": {**CONTENT["methods"], "ours": OLD_METHODS["ours"]}},
        {**CONTENT, "methods": {"grpo": {"composition": ["a"]}}, "grid": {"tau_max": 1}},
        {"methods": {"grpo": {"composition": None}, "x": 3}, "grid": [3], "training": None},
    ],
)
def test_one_old_key_is_enough_whatever_is_beside_it(tmp_path: Path, content: dict) -> None:
    assert message(tmp_path, content).count("of an earlier form of studies") == 1


def test_a_study_of_today_has_no_old_form() -> None:
    assert old_form(CONTENT) is None
