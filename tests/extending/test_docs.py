"""docs/extending.md shows the files of this folder as they are."""

import re
from pathlib import Path

HERE = Path(__file__).parent
SHOWN = r"^`tests/extending/(\S+)`:\n```\w+\n(.*?)^```$"
PAGE = HERE.parents[1] / "docs" / "extending.md"


def test_the_page_shows_every_file_as_it_is() -> None:
    shown = re.findall(
        r"^`tests/extending/(\S+)`:\n```\w+\n(.*?)^```$", PAGE.read_text(), re.M | re.S
    )
    files = {"study.yaml", *(f"lab/{path.name}" for path in (HERE / "lab").glob("*.py"))}
    assert {name for name, _ in shown} == files and len(shown) == len(files)
    for name, text in shown:
        assert text == (HERE / name).read_text(), name
