"""The environment files are conda's, and their pins fit together."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from rattler import MatchSpec

REPOSITORY = Path(__file__).parents[2]
ENVIRONMENTS = sorted((REPOSITORY / "envs").glob("*.yaml"))
TOOLS = Path(sys.executable).parent


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_every_conda_line_parses_strictly(path: Path) -> None:
    environment = yaml.safe_load(path.read_text())
    assert environment["channels"] == ["conda-forge", "nodefaults"]
    *lines, pip = environment["dependencies"]
    for line in lines:
        MatchSpec(line, strict=True)
    with pytest.raises(Exception, match="incompatible"):
        MatchSpec("python=3.12.*", strict=True)
    assert list(pip) == ["pip"]


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_the_pins_fit_together_and_are_all_there_is(path: Path, tmp_path: Path) -> None:
    """Only metadata are fetched; an environment that lacks a pin would get one more line."""
    pins = yaml.safe_load(path.read_text())["dependencies"][-1]["pip"]
    source = tmp_path / "pins.in"
    source.write_text("\n".join(pins) + "\n")
    target = ("--python-version", "3.12", "--python-platform", "x86_64-manylinux_2_31")
    options = ("--quiet", "--no-config", "--no-header", "--no-annotate")
    done = subprocess.run(
        [str(TOOLS / "uv"), "pip", "compile", str(source), *options, *target],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == pins, "run `make lock`"


def test_make_lock_would_change_nothing() -> None:
    files = [*ENVIRONMENTS, REPOSITORY / "requirements-gpu.lock"]
    before = {path: path.read_text() for path in files}
    try:
        subprocess.run([sys.executable, str(REPOSITORY / "tools" / "lock.py")], check=True)
        assert {path: path.read_text() for path in files} == before, "run `make lock`"
    finally:
        for path, text in before.items():
            path.write_text(text)


def test_the_dockerfile_passes_its_linter() -> None:
    done = subprocess.run(
        [str(TOOLS / "hadolint"), str(REPOSITORY / "Dockerfile")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^#.*docker run .*--gpus", (REPOSITORY / "Dockerfile").read_text(), re.M)
