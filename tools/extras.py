"""Print the requirements of some extras of pyproject.toml, without the project's own."""

import sys
import tomllib
from pathlib import Path

if __name__ == "__main__":
    text = Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    print("\n".join(requirement for name in sys.argv[1:] for requirement in extras[name]))
