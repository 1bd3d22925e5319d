"""Read a study file: one complete file (config/studies/*.yaml), all its mistakes listed at once."""

from pathlib import Path

import yaml
from pydantic import ValidationError

from grpo_replay.config import Strict, Study
from grpo_replay.errors import ConfigError, suggestion


def load_study(path: Path | str) -> Study:
    """Read and check a study file.

    Raises:
        ConfigError: naming the file, and for every mistake its key, the value and the repair.
    """
    path = Path(path)
    if not path.is_file():
        names = sorted(p.stem for p in path.parent.glob("*.yaml"))
        raise ConfigError(
            f"{path}: no such study{suggestion(path.stem, names)}; there are: {', '.join(names)}"
        )
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: a study is a mapping of keys, found {type(content).__name__}")
    try:
        study = Study.model_validate(content)
    except ValidationError as error:
        raise ConfigError("\n".join(_describe(path, item) for item in error.errors())) from error
    if study.study != path.stem:
        raise ConfigError(
            f"{path}: study: {study.study!r} must equal the file's name {path.stem!r}"
        )
    return study


def _describe(path: Path, item: dict) -> str:
    # Tags of discriminated unions stand in the location; users only know the keys of the file.
    keys = [str(part) for part in item["loc"]]
    if item["type"] == "extra_forbidden":
        return f"{path}: {_dotted(keys)}: unknown key{suggestion(keys[-1], _known_keys())}"
    if item["type"] == "missing":
        return f"{path}: {_dotted(keys)}: missing; see config/README.md"
    message = item["msg"].removeprefix("Value error, ")
    if isinstance(item["input"], dict | list):
        return f"{path}: {_dotted(keys) or 'study'}: {message}"
    return f"{path}: {_dotted(keys)}: {message} (found {item['input']!r})"


_UNION_TAGS = {"clock", "file", "from_scratch", "pretrained", "none", "pool", "anchored"}


def _dotted(keys: list[str]) -> str:
    return ".".join(key for key in keys if key not in _UNION_TAGS)


def _known_keys() -> list[str]:
    """Every key of every section: good enough to suggest a repair for a misspelt one."""
    return sorted({key for section in _sections(Strict) for key in section.model_fields})


def _sections(base: type[Strict]) -> list[type[Strict]]:
    return [base, *(s for child in base.__subclasses__() for s in _sections(child))]
