"""Imports point down, each heavy library has one door, and the README draws the rooms there are."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
SOURCE = ROOT / "src" / "grpo_replay"
MODULES = sorted(SOURCE.rglob("*.py"))
# From the ground up. A module imports from its own room and from those below; rooms of one floor
# do not know each other.
FLOORS = [
    {"errors"},
    {"files", "fields", "ranges"},
    {"parts"},
    {"tasks", "methods", "statistics", "machine"},
    {"models"},
    {"study"},
    {"results"},
    {"training", "evaluation"},
    {"reporting/labels", "reporting/names"},
    {"reporting/numbers"},
    {"reporting/tables", "reporting/figures"},
    {"reporting/paper", "reporting/browse"},
    {"planning", "tracking"},
]
DOORS = {
    "mlflow": {"tracking"},
    "trl": {"training"},
    "math_verify": {"tasks/math"},
    "vllm": {"evaluation/engines.py"},
    "huggingface_hub": {"tasks/hub.py", "models/hub.py"},
}
# What Snakemake reads before every run, and what a study names.
CHEAP = ("study", "methods", "tasks/config.py", "models/config.py")


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a module: its package, and within reporting the package inside."""
    depth = 2 if parts[0] == "reporting" else 1
    return "/".join(part.removesuffix(".py") for part in parts[:depth])


def floor_of(room: str) -> int:
    return next(i for i, rooms in enumerate(FLOORS) if room in rooms)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    parts = path.relative_to(SOURCE).parts
    if parts[-1] == "__init__.py" and len(parts) < 3:
        return
    own = room_of(parts)
    for name in imports(path):
        if name.startswith("grpo_replay."):
            other = room_of(tuple(name.split(".")[1:]))
            below = floor_of(other) < floor_of(own)
            assert other == own or below, f"{own} imports {other}"


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


def test_the_readme_draws_every_room() -> None:
    packages = {
        "/".join(path.parent.relative_to(SOURCE).parts)
        for path in MODULES
        if path.name == "__init__.py" and path.parent != SOURCE
    }
    tree = re.search(r"^src/grpo_replay/$(.*?)^[a-z]+/", README.read_text(), re.M | re.S)
    assert tree, "README.md: no tree of src/grpo_replay/"
    drawn, above = set(), ""
    for indent, room in re.findall(r"^( +)([a-z_]+)/", tree[1], re.M):
        above = above if len(indent) > 2 else room
        drawn.add(room if len(indent) <= 2 else f"{above}/{room}")
    assert drawn == packages


def test_what_a_study_names_is_read_without_heavy_libraries() -> None:
    heavy = ("torch", "transformers", "trl", "vllm", "mlflow", "pandas", "sympy", "matplotlib")
    paths = [p for p in MODULES if str(p.relative_to(SOURCE)).startswith(CHEAP)]
    names = [".".join(["grpo_replay", *p.relative_to(SOURCE).with_suffix("").parts]) for p in paths]
    code = f"import importlib, sys\nfor name in {names}: importlib.import_module(name)\n"
    code += f"print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stdout


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
