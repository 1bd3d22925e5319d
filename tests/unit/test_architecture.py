"""Imports point one way, and each heavy library has one door."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "grpo_replay"
MODULES = sorted(SOURCE.rglob("*.py"))
# A module may import from layers below its own, and from its own.
LAYERS = [
    {"errors", "files", "source_record", "failed_jobs"},
    {"ranges"},
    {"sources"},
    {
        "config",
        "prompts",
        "chat_template",
        "end_tokens",
        "weights",
        "metrics",
        "statistics",
        "permutation",
        "strata",
        "provenance",
        "console",
        "devices",
        "rollout_server",
    },
    {"grid", "clock_arithmetic", "study_file", "study_yaml", "oddities", "settings"},
    {"math_answers", "replay"},
    {"hub"},
    {"problems"},
    {"preflight", "plan", "gpu_memory"},
    {"costs", "announcements"},
    {"training", "evaluation", "reporting"},
    {"tracking"},
]
SIDES = {"training", "evaluation", "reporting"}
DOORS = {
    "mlflow": {"tracking"},
    "trl": {"training"},
    "math_verify": {"math_answers"},
    "vllm": {"evaluation/engines.py"},
    "huggingface_hub": {"hub.py"},
}


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def layer_of(part: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if part in names)


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    own = part_of(path)
    if own == "__init__":
        return
    for name in imports(path):
        if name.startswith("grpo_replay."):
            other = name.split(".")[1]
            assert layer_of(other) <= layer_of(own), f"{own} imports {other}"
            assert not ({own, other} <= SIDES and own != other), f"{own} imports {other}"


@pytest.mark.parametrize("library", DOORS)
def test_a_heavy_library_has_one_door(library: str) -> None:
    users = {
        str(path.relative_to(SOURCE))
        for path in MODULES
        if any(name.split(".")[0] == library for name in imports(path))
    }
    assert users
    for user in users:
        assert any(user == door or user.startswith(f"{door}/") for door in DOORS[library]), user


def test_files_are_small() -> None:
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= 300, path
    scripts = SOURCE.parents[1] / "workflow" / "scripts"
    for path in scripts.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 25, path


def test_no_global_randomness_and_no_pickle() -> None:
    for path in MODULES:
        for name in imports(path):
            assert name.split(".")[0] not in ("pickle", "random"), path
        text = path.read_text()
        assert "np.random.seed" not in text and "trust_remote_code=True" not in text, path
