"""Write the exact pins of every environment but `make install`'s, from pyproject.toml alone.

`envs/<name>.yaml` are conda environments, `requirements-gpu.lock` is the whole project with vLLM
for the Dockerfile; all of them are for Linux on x86-64 with Python 3.12. What is already pinned
stays while it fits, and so does what requirements.lock pins: nothing moves by itself.
Run by `make lock`; it needs uv and a package index.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
GPU_LOCK = REPOSITORY / "requirements-gpu.lock"
# 2_28 has no wheel of one dependency of vLLM.
TARGET = ("--python-version", "3.12", "--python-platform", "x86_64-manylinux_2_31")
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


def resolve(asked: list[str], preferred: list[str]) -> list[str]:
    """All pins that the requirements lead to; preferred ones are kept where they fit."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        sys.exit("make lock needs uv: pip install uv")
    with tempfile.TemporaryDirectory() as folder:
        source, pins = Path(folder, "asked.in"), Path(folder, "pins.txt")
        source.write_text("\n".join(asked) + "\n", encoding="utf-8")
        pins.write_text("\n".join(preferred) + "\n", encoding="utf-8")
        options = ("--quiet", "--no-config", "--no-header", "--no-annotate", *TARGET)
        command = [uv, "pip", "compile", str(source), "--output-file", str(pins), *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"uv finds no versions that fit together:\n{done.stderr}")
        return pins.read_text(encoding="utf-8").split()


def main() -> None:
    """Write every file anew."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    asked = direct_requirements(project)
    base = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8").split()
    old = GPU_LOCK.read_text(encoding="utf-8").split() if GPU_LOCK.is_file() else base
    gpu = resolve(asked.pop("gpu"), old)
    GPU_LOCK.write_text("\n".join(gpu) + "\n", encoding="utf-8")
    for name, lines in asked.items():
        beside_vllm = any(name_of(line) == "vllm" for line in lines)
        pins = resolve(lines, gpu if beside_vllm else base)
        text = HEAD.format(name=name) + "".join(f"      - {pin}\n" for pin in pins)
        (REPOSITORY / "envs" / f"{name}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
