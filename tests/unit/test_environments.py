"""Every environment has the pins of pyproject.toml, and whatever its rules import."""

import ast
import re
import runpy
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
NAMES = PROJECT["tool"]["grpo-replay"]["environments"]
SOURCE = REPOSITORY / "src" / "grpo_replay"
EXACT = re.compile(r"([a-z0-9-]+)==([\w.!+]+)")
REPAIR = "pyproject.toml and the written pins differ: run `make lock`"


def name_of(text: str) -> str:
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", text).group()).lower()


def exact(lines: list[str]) -> dict[str, str]:
    """Versions by name; nothing but exact versions is allowed."""
    found = {}
    for line in lines:
        match = EXACT.fullmatch(re.sub(r"\[.*\]", "", line).lower().replace("_", "-"))
        assert match, f"{line}: not an exact version"
        found[name_of(match[1])] = match[2]
    return found


def asked(names: list[str], with_vllm: bool) -> dict[str, str]:
    project = PROJECT["project"]
    own = exact(project["dependencies"] + project["optional-dependencies"]["vllm"])
    other = PROJECT["tool"]["grpo-replay"]["beside-vllm"] if with_vllm else {}
    return {name_of(name): other.get(name_of(name), own[name_of(name)]) for name in names}


def pip_section(name: str) -> list[str]:
    environment = yaml.safe_load((REPOSITORY / "envs" / f"{name}.yaml").read_text())
    return environment["dependencies"][-1]["pip"]


def locked(file: str) -> dict[str, str]:
    return exact((REPOSITORY / file).read_text().split())


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_has_the_pins_of_pyproject(name: str) -> None:
    pins = exact(pip_section(name))
    expected = asked(NAMES[name], with_vllm="vllm" in NAMES[name])
    assert {package: pins.get(package) for package in expected} == expected, REPAIR
    base = locked("requirements-gpu.lock" if "vllm" in NAMES[name] else "requirements.lock")
    same = {package for package in pins if package in base}
    assert {p: pins[p] for p in same} == {p: base[p] for p in same}, REPAIR
    assert not list((REPOSITORY / "envs").glob("*.pin.txt"))  # would replace the pip section


def test_the_locks_have_the_pins_of_pyproject() -> None:
    project = PROJECT["project"]
    names = [re.match(r"[\w.-]+", line).group() for line in project["dependencies"]]
    test = exact(project["optional-dependencies"]["test"])
    for file, wanted in (
        ("requirements.lock", asked(names, with_vllm=False) | test),
        ("requirements-gpu.lock", asked([*names, "vllm"], with_vllm=True)),
    ):
        pins = locked(file)
        assert {package: pins.get(package) for package in wanted} == wanted, (file, REPAIR)


def test_every_environment_file_is_written_from_pyproject() -> None:
    head = runpy.run_path(str(REPOSITORY / "tools" / "lock.py"))["HEAD"]
    assert {path.stem for path in (REPOSITORY / "envs").iterdir()} == set(NAMES), REPAIR
    for name in NAMES:
        text = (REPOSITORY / "envs" / f"{name}.yaml").read_text()
        pins = "".join(f"      - {pin}\n" for pin in pip_section(name))
        assert text == head.format(name=name) + pins, REPAIR


def imported(path: Path, seen: set[Path]) -> set[str]:
    """Top-level names that a file imports, itself or by a module of ours."""
    if path in seen:
        return set()
    seen.add(path)
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for module in modules:
            names.add(module.split(".")[0])
            if module.split(".")[0] == "grpo_replay":
                for file in ours(module):
                    names |= imported(file, seen)
    return names


def ours(module: str) -> list[Path]:
    """The files of a module of ours: of its packages, and its own."""
    parts = module.split(".")[1:]
    packages = [SOURCE.joinpath(*parts[:depth], "__init__.py") for depth in range(len(parts) + 1)]
    return [p for p in (*packages, SOURCE.joinpath(*parts).with_suffix(".py")) if p.is_file()]


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_has_what_its_rules_import(name: str) -> None:
    rules = "".join(p.read_text() for p in (REPOSITORY / "workflow" / "rules").glob("*.smk"))
    pairs = re.findall(r'envs/(\w+)\.yaml".*?"\.\./scripts/(\w+\.py)"', rules, re.DOTALL)
    scripts = {script for environment, script in pairs if environment == name}
    assert scripts
    found: set[str] = set()
    for script in scripts:
        found |= imported(REPOSITORY / "workflow" / "scripts" / script, set())
    distributions = packages_distributions()
    # What the standard library has, and vLLM where it is absent, is in no distribution here.
    needed = {name_of(distributions[module][0]) for module in found if module in distributions}
    missing = needed - {"grpo-replay"} - set(exact(pip_section(name)))
    assert not missing, f"add to tool.grpo-replay.environments.{name}: {sorted(missing)}"
