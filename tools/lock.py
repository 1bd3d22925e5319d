"""Write the exact pins of every environment, from pyproject.toml alone.

`requirements.lock` is the project with its tests and without vLLM, for Python 3.11 and 3.12;
`envs/<name>.yaml` are conda environments, `requirements-gpu.lock` is the whole project with vLLM
for the Dockerfile, both for Linux on x86-64 with Python 3.12. What is already pinned stays while it
fits: nothing moves by itself. Run by `make lock`; it needs uv and a package index.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
LOCK = REPOSITORY / "requirements.lock"
GPU_LOCK = REPOSITORY / "requirements-gpu.lock"
# 2_28 has no wheel of one dependency of vLLM.
PLATFORM = ("--python-platform", "x86_64-manylinux_2_31")
PYTHONS = ("3.11", "3.12")
# What torch's CUDA build asks for in exact versions itself, and its CPU build has no use for.
CUDA = ("cuda-", "nvidia-", "triton")
HEAD = """\
# Written by `make lock` from pyproject.toml. Linux on x86-64; no pin file beside it, which would
# replace the pip section.
name: grpo-replay-{name}
channels:
  - conda-forge
  - nodefaults
dependencies:
  - python=3.12
  - pip
  - pip:
"""


def name_of(requirement: str) -> str:
    """The normalized name of a requirement (PEP 503)."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement).group()).lower()


def pinned(project: dict) -> dict[str, str]:
    """The project's own exact requirements by name, vLLM with them."""
    pins = project["project"]["dependencies"] + project["project"]["optional-dependencies"]["vllm"]
    return {name_of(pin): pin for pin in pins}


def requirements(project: dict, packages: list[str]) -> list[str]:
    """The exact requirements of an environment that has these packages.

    Raises:
        KeyError: for a package that pyproject.toml does not pin.
    """
    pins = pinned(project)
    names = [name_of(package) for package in packages]
    if "vllm" in names:
        other = project["tool"]["grpo-replay"]["beside-vllm"]
        pins |= {name_of(name): f"{name}=={version}" for name, version in other.items()}
    return [pins[name] for name in names]


def direct_requirements(project: dict) -> dict[str, list[str]]:
    """What is asked for by name, of each environment of envs/ and of the whole with vLLM."""
    environments = project["tool"]["grpo-replay"]["environments"]
    asked = {name: requirements(project, packages) for name, packages in environments.items()}
    return {"gpu": requirements(project, list(pinned(project))), **asked}


def resolve(asked: list[str], preferred: list[str], python: str = "3.12") -> list[str]:
    """All pins that the requirements lead to; preferred ones are kept where they fit."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        sys.exit("make lock needs uv: pip install uv")
    with tempfile.TemporaryDirectory() as folder:
        source, pins = Path(folder, "asked.in"), Path(folder, "pins.txt")
        source.write_text("\n".join(asked) + "\n", encoding="utf-8")
        pins.write_text("\n".join(preferred) + "\n", encoding="utf-8")
        options = ("--quiet", "--no-config", "--no-header", "--no-annotate", *PLATFORM)
        command = [uv, "pip", "compile", str(source), "--output-file", str(pins), *options]
        command += ["--python-version", python]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"uv finds no versions that fit together:\n{done.stderr}")
        return pins.read_text(encoding="utf-8").split()


def without_vllm(project: dict, preferred: list[str]) -> list[str]:
    """The pins of the project and its tests, which serve every Python that it runs on."""
    parts = project["project"]
    asked = parts["dependencies"] + parts["optional-dependencies"]["test"]
    found = [resolve(asked, preferred, python) for python in PYTHONS]
    if found[1:] != found[:-1]:
        sys.exit(f"Python {' and '.join(PYTHONS)} need different packages; no one lock serves all")
    return [pin for pin in found[0] if not pin.startswith(CUDA)]


def main() -> None:
    """Write every file anew."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    asked = direct_requirements(project)
    base = without_vllm(project, read(LOCK))
    LOCK.write_text("\n".join(base) + "\n", encoding="utf-8")
    gpu = resolve(asked.pop("gpu"), read(GPU_LOCK))
    GPU_LOCK.write_text("\n".join(gpu) + "\n", encoding="utf-8")
    for name, lines in asked.items():
        beside_vllm = any(name_of(line) == "vllm" for line in lines)
        pins = resolve(lines, gpu if beside_vllm else base)
        text = HEAD.format(name=name) + "".join(f"      - {pin}\n" for pin in pins)
        (REPOSITORY / "envs" / f"{name}.yaml").write_text(text, encoding="utf-8")


def read(lock: Path) -> list[str]:
    """The pins of a lock, none where it is not there yet."""
    return lock.read_text(encoding="utf-8").split() if lock.is_file() else []


if __name__ == "__main__":
    main()
