"""Read a study file: one complete file (config/studies/*.yaml), all its mistakes listed at once."""

from functools import cache
from pathlib import Path

from pydantic import ValidationError

from grpo_replay.errors import ConfigError, suggestion
from grpo_replay.fields import Strict
from grpo_replay.study.config import Study
from grpo_replay.study.old_form import old_form
from grpo_replay.study.yaml_values import read_yaml

MAX_MISTAKES = 40  # as many as a person reads

# The keys that tell the forms of a section apart.
_WORDS = ("source", "kind", "compose")


def load_study(path: Path | str) -> Study:
    """Read and check a study file.

    Raises:
        ConfigError: naming the file, and for every mistake its key, the value and the repair.
    """
    path = Path(path)
    if not _is_file(path):
        names = sorted(p.stem for p in path.parent.glob("*.yaml"))
        raise ConfigError(
            f"{path}: no such study{suggestion(path.stem, names)}; there are: {', '.join(names)}"
        )
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: a study is a mapping of keys, found {type(content).__name__}")
    try:
        study = Study.model_validate(content)
    except ValidationError as error:
        if old := old_form(content):
            raise ConfigError(f"{path}: {old}") from None
        raise ConfigError(_describe_all(path, error, content)) from error
    if study.study != path.stem:
        raise ConfigError(
            f"{path}: study: {study.study!r} must equal the file's name {path.stem!r}"
        )
    return study


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def _describe_all(path: Path, error: ValidationError, content: dict) -> str:
    found = error.errors()
    lines = [_describe(path, item, content) for item in found[:MAX_MISTAKES]]
    more = len(found) - len(lines)
    return "\n".join(lines + ([f"{path}: and {more} more mistakes"] if more else []))


def _describe(path: Path, item: dict, content: dict) -> str:
    key = _dotted(item["loc"], content)
    if item["type"] == "extra_forbidden":
        return f"{path}: {key}: unknown key{suggestion(str(item['loc'][-1])[:80], _known_keys())}"
    if item["type"] == "missing":
        return f"{path}: {key}: missing; see config/README.md"
    message = item["msg"].removeprefix("Value error, ")
    if isinstance(item["input"], dict | list):
        return f"{path}: {key or 'study'}: {message}"
    return f"{path}: {key}: {message} (found {_shown(item['input'])})"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _dotted(location: tuple, content: object) -> str:
    """The keys of a location in the file, without the tags that pydantic adds to them."""
    keys: list[str | None] = []
    node = content
    for part in location:
        tags = [node.get(word) for word in _WORDS] if isinstance(node, dict) else []
        if part in tags and not (keys and keys[-1] is None):
            keys.append(None)  # the tag of this section; a second one is a key of that name
            continue
        keys.append(str(part)[:80])
        node = _inside(node, part)
    return ".".join(key for key in keys if key is not None)


def _inside(node: object, part: str | int) -> object:
    if isinstance(node, dict):
        return node.get(part)
    # What is missing in a list has a place beyond its end.
    there = isinstance(node, list) and isinstance(part, int) and part < len(node)
    return node[part] if there else None


@cache
def _known_keys() -> list[str]:
    """Every key of every section: good enough to suggest a repair for a misspelt one."""
    return sorted({key for section in _sections(Strict) for key in section.model_fields})


def _sections(base: type[Strict]) -> list[type[Strict]]:
    return [base, *(s for child in base.__subclasses__() for s in _sections(child))]
