"""A stand-in for conda: environments are venvs of this Python, with the file's pip section.

It shows that rules run in environments of their own, and with what these hold. It shows nothing of
conda-forge, nor of conda itself. The folder that `install` makes goes first on the PATH.
"""

import json
import subprocess
import sys
from pathlib import Path

import yaml

CONDA = """\
#!{python}
import sys
from pathlib import Path

sys.path.insert(0, {tests!r})

import stand_in_conda

stand_in_conda.main(Path(__file__).parents[1], sys.argv[1:])
"""
ACTIVATE = 'export PATH="$1/bin:$PATH"\n'
# In each environment: a process that ends tells what it ran on, and what it took from elsewhere.
WITNESS = """\
import atexit
import json
import os
import sys


def tell():
    files = {{name: getattr(module, "__file__", None) for name, module in sys.modules.items()}}
    inside = os.path.realpath(sys.prefix)
    outside = {{
        name.split(".")[0]
        for name, file in files.items()
        if file and "site-packages" in file and not os.path.realpath(file).startswith(inside)
    }}
    told = {{"prefix": sys.prefix, "command": sys.argv, "outside": sorted(outside)}}
    with open({log!r}, "a") as log:
        print(json.dumps(told), file=log)


atexit.register(tell)
"""


def install(folder: Path) -> None:
    """Make a folder with `bin/conda` and `bin/activate`."""
    (folder / "bin").mkdir(parents=True)
    conda = folder / "bin" / "conda"
    conda.write_text(CONDA.format(python=sys.executable, tests=str(Path(__file__).parent)))
    conda.chmod(0o755)
    (folder / "bin" / "activate").write_text(ACTIVATE)


def create(file: Path, prefix: Path, log: Path) -> None:
    """What `conda env create` does with our files."""
    sections = yaml.safe_load(file.read_text())["dependencies"]
    pins = prefix.with_suffix(".pip.txt")
    pins.write_text("\n".join(sections[-1]["pip"]) + "\n")
    subprocess.run([sys.executable, "-m", "venv", str(prefix)], check=True)
    pip = [str(prefix / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", "-r", str(pins)], check=True)
    site = next((prefix / "lib").glob("python*/site-packages"))
    (site / "sitecustomize.py").write_text(WITNESS.format(log=str(log)))


def main(folder: Path, arguments: list[str]) -> None:
    """Answer the calls that Snakemake makes."""
    match arguments:
        case ["info", *_]:
            print(json.dumps({"conda_prefix": str(folder), "platform": "linux-64"}))
        case ["--version"]:
            print("conda 25.1.1")
        case ["config", "--get", "channel_priority", "--json"]:
            print(json.dumps({"get": {"channel_priority": "strict"}}))
        case ["env", "create", *options]:
            values = dict(zip(options, options[1:], strict=False))
            create(Path(values["--file"]), Path(values["--prefix"]), folder / "processes.jsonl")
        case ["clean", *_]:
            pass
        case _:
            sys.exit(f"the stand-in for conda does not know: {arguments}")
