"""YAML as a study file is read: what has two readings, or none, is refused with its line.

PyYAML reads YAML 1.1, in which 042 is 34, 1:30 is 90 and `no` is false. Here numbers, true, false
and null are those of YAML 1.2; what the two read otherwise is to be written plainly or in quotes.
"""

import re
import unicodedata
from pathlib import Path
from typing import Any

import yaml

from grpo_replay.errors import ConfigError

MAX_BYTES = 500_000
MAX_DEPTH = 50
MAX_NODES = 20_000  # values, those behind an alias counted as often as they are named
MAX_DIGITS = 30

_ODD = "tag:grpo-replay,2026:odd"
_PLAIN = {
    "tag:yaml.org,2002:bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "tag:yaml.org,2002:null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "tag:yaml.org,2002:int": (r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    "tag:yaml.org,2002:float": (
        r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    # Numbers with leading zeros or underscores, of other bases or of base 60, dates, yes and no.
    _ODD: (
        r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|[-+]?\.[0-9][0-9_]*|[-+]?0[bxo][0-9a-fA-F_]+"
        r"|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"
        r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt\s].*)?"
        r"|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF",
        "-+.0123456789yYnNoO",
    ),
}


class _Loader(yaml.SafeLoader):
    """YAML 1.2's plain values; no tags, no key twice, nothing that is too deep or too much."""

    yaml_implicit_resolvers: dict = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.extents: dict[int, tuple[int, int]] = {}  # values and levels, by id of the node

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        event = self.peek_event()
        if getattr(event, "tag", None) is not None:
            raise _refusal(f"tags are not read ({event.tag})", event.start_mark)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _refusal(f"nested more than {MAX_DEPTH} deep", event.start_mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        if not isinstance(event, yaml.AliasEvent):
            self._measure(node, event.start_mark)
        return node

    def _measure(self, node: yaml.Node, mark: yaml.Mark) -> None:
        """Refuse what is too much once its aliases are what they stand for."""
        if isinstance(children := node.value, str):
            children = []
        elif isinstance(node, yaml.MappingNode):
            children = [child for pair in node.value for child in pair]
        # Still unknown is what an alias within itself stands for.
        known = [self.extents.get(id(child), (MAX_NODES, 0)) for child in children]
        values = 1 + sum(count for count, _ in known)
        levels = 1 + max((level for _, level in known), default=0)
        if values > MAX_NODES or levels > MAX_DEPTH:
            raise _refusal(
                f"more than {MAX_NODES} values, or {MAX_DEPTH} levels: no study is as long", mark
            )
        self.extents[id(node)] = (values, levels)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if isinstance(name, list | dict):
                raise _refusal("a list or a mapping is no key", key.start_mark)
            if name in seen:
                raise _refusal(f"key {name!r} stands twice", node.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)

    def construct_integer(self, node: yaml.ScalarNode) -> int:
        if len(node.value) > MAX_DIGITS:
            raise _refusal(
                f"a number of {len(node.value)} digits; is it a text? put it in quotes",
                node.start_mark,
            )
        return int(node.value)

    def construct_decimal(self, node: yaml.ScalarNode) -> float:
        return float(re.sub(r"\.(inf|nan)$", r"\1", node.value, flags=re.IGNORECASE))

    def construct_text(self, node: yaml.ScalarNode) -> str:
        for character in node.value:
            # A lone half of a pair cannot be written; a control character breaks tables and paths.
            if unicodedata.category(character) in ("Cc", "Cs"):
                raise _refusal(f"a text holds U+{ord(character):04X}", node.start_mark)
        return node.value

    def refuse_odd(self, node: yaml.ScalarNode) -> None:
        raise _refusal(
            f"{node.value[:40]} is read in two ways: write a plain decimal number, true or false, "
            "or put it in quotes",
            node.start_mark,
        )


for _tag, (_pattern, _first) in _PLAIN.items():
    _Loader.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})\Z"), list(_first))
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_decimal)
_Loader.add_constructor("tag:yaml.org,2002:str", _Loader.construct_text)
_Loader.add_constructor(_ODD, _Loader.refuse_odd)


def _refusal(problem: str, mark: yaml.Mark | None) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def read_yaml(path: Path) -> Any:
    """The content of a small YAML file.

    Raises:
        ConfigError: one line that names the file and, where there is one, the line.
    """
    text = _read_text(path)
    loader = _Loader("")
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        place = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        problem = " ".join(filter(None, (error.context, error.problem, error.note)))
        raise ConfigError(f"{path}{place}: not valid YAML: {_one_line(problem)}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {_one_line(str(error))}") from error
    finally:
        loader.dispose()


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path}: more than {MAX_BYTES // 1000} kB: no study is as long")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8: save the file as UTF-8") from error


def _one_line(text: str) -> str:
    """An error of the parser without its line breaks, whole sentences of it at most."""
    return " ".join(text.split())[:300]
