"""Read a study file: one complete file (config/studies/*.yaml), all its mistakes listed at once."""

from pathlib import Path

import yaml
from pydantic import ValidationError

from grpo_replay.config import Study
from grpo_replay.errors import ConfigError, suggestion
from grpo_replay.sources import Strict


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
        content = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeys)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: a study is a mapping of keys, found {type(content).__name__}")
    try:
        study = Study.model_validate(content)
    except ValidationError as error:
        raise ConfigError(
            "\n".join(_describe(path, item, content) for item in error.errors())
        ) from error
    if study.study != path.stem:
        raise ConfigError(
            f"{path}: study: {study.study!r} must equal the file's name {path.stem!r}"
        )
    return study


def _describe(path: Path, item: dict, content: dict) -> str:
    key = _dotted(item["loc"], content)
    if item["type"] == "extra_forbidden":
        return f"{path}: {key}: unknown key{suggestion(str(item['loc'][-1]), _known_keys())}"
    if item["type"] == "missing":
        return f"{path}: {key}: missing; see config/README.md"
    message = item["msg"].removeprefix("Value error, ")
    if isinstance(item["input"], dict | list):
        return f"{path}: {key or 'study'}: {message}"
    return f"{path}: {key}: {message} (found {item['input']!r})"


def _dotted(location: tuple, content: object) -> str:
    """The keys of a location in the file, without the tags that pydantic adds to them."""
    keys: list[str | None] = []
    node = content
    for part in location:
        tags = (node.get("source"), node.get("composition")) if isinstance(node, dict) else ()
        if part in tags and not (keys and keys[-1] is None):
            keys.append(None)  # the tag of this section; a second one is a key of that name
            continue
        keys.append(str(part))
        node = _inside(node, part)
    return ".".join(key for key in keys if key is not None)


def _inside(node: object, part: str | int) -> object:
    if isinstance(node, dict):
        return node.get(part)
    return node[part] if isinstance(node, list) and isinstance(part, int) else None


class _UniqueKeys(yaml.SafeLoader):
    """YAML, but a key that stands twice in a mapping is an error: the first would be lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} stands twice", node.start_mark
                )
        return super().construct_mapping(node, deep)


def _known_keys() -> list[str]:
    """Every key of every section: good enough to suggest a repair for a misspelt one."""
    return sorted({key for section in _sections(Strict) for key in section.model_fields})


def _sections(base: type[Strict]) -> list[type[Strict]]:
    return [base, *(s for child in base.__subclasses__() for s in _sections(child))]
