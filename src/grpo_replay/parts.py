"""A choice is one class in one file: what every part is made of, and how one of outside is named.

A *part* is a section of a study (its settings and their checks) and the code that works by it. The
parts of an axis form a union, told apart by one word (`kind`, or `compose` for replay); the union
is the registry. A part of one's own is named by an import path:

    priority: {kind: import, path: "lab.recency:Recency", settings: {half_life: 20}}

Such a file is code that runs with the rights of whoever starts the study.
"""

import ast
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError, WrapValidator, model_serializer

from grpo_replay.errors import suggestion
from grpo_replay.fields import Strict
from grpo_replay.files import digest, file_digest

OWN_PACKAGE = __name__.partition(".")[0]
IMPORT = "import"
MAX_FAULT = 300  # letters of another's message, as many as a person reads
_IMPORT_KEYS = {"kind", "path", "settings", "sha256"}


class Part(Strict):
    """One choice on one axis: its word, its settings, and its work.

    A part without a memory is its own runtime object. One with a memory (a buffer, a generator of
    random numbers) returns another object from `start`, with the same functions.
    """

    def identity(self) -> dict[str, Any]:
        """What of it decides a result: its word, and the settings that are not at their default.

        So a setting that is added with a default makes no finished cell stale. A part of outside
        adds the digest of its file, and of the local modules that the file imports.
        """
        own = {name: _plain(getattr(self, name)) for name in self._deciding()}
        if not is_outside(type(self)):
            return own
        return {**self.model_dump(mode="json"), "sha256": source_digest(type(self))}

    @classmethod
    def label(cls) -> str:
        """How a study names it: its word, or the import path of one from outside."""
        if is_outside(cls):
            return path_of(cls)
        return next((cls.model_fields[word].default for word in sorted(cls.words())), cls.__name__)

    @classmethod
    def words(cls) -> set[str]:
        """The fields that can hold one word alone, which tells the parts of an axis apart."""
        return {name for name, field in cls.model_fields.items() if _is_word(field.annotation)}

    def _deciding(self) -> list[str]:
        fields, words = type(self).model_fields, self.words()
        return [n for n, f in fields.items() if n in words or getattr(self, n) != f.default]

    @model_serializer(mode="wrap")
    def _dump(self, handler: Callable) -> dict[str, Any]:
        settings = handler(self)
        if not is_outside(type(self)):
            return settings
        given = [name for name in self._deciding() if name not in self.words()]
        own = {name: settings[name] for name in given}
        return {"kind": IMPORT, "path": path_of(type(self)), "settings": own}

    def start(self, seed: int) -> Any:
        """The object that works in one training; `seed` is of this axis and cell alone."""
        return self

    def metrics(self, step: int) -> dict[str, float | None]:
        """What the record of a finished step says of this part, by name; asked for once a step."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint holds: `values` (JSON-like), `arrays` (numpy); both may be absent."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where `state_dict` was taken."""


def or_imported(base: type[Part]) -> WrapValidator:
    """Lets an axis take a subclass of `base` that lives outside the package, by its import path."""

    def validate(value: Any, handler: Callable) -> Any:
        if isinstance(value, base):
            return value
        if isinstance(value, dict) and value.get("kind") == IMPORT:
            return _imported(base, value)
        return handler(value)

    return WrapValidator(validate)


def _imported(base: type[Part], section: dict[str, Any]) -> Part:
    if unknown := sorted(set(section) - _IMPORT_KEYS):
        raise ValueError(f"unknown key {unknown[0]!r} beside path and settings")
    path = section.get("path")
    try:
        found = imported(path)
    except ValueError as error:
        raise ValueError(f"path: {error}") from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ValueError(f"path: {path} is no subclass of {base.__module__}:{base.__name__}")
    if section.get("sha256") not in (None, source_digest(found)):
        raise ValueError(
            f"path: the file of {path} has changed since the run was planned: plan it anew"
        )
    try:
        return found.model_validate(section.get("settings", {}))
    except ValidationError as error:
        details = [_inside_settings(item) for item in error.errors()]
        raise ValidationError.from_exception_data(path, details) from None


def _inside_settings(item: Any) -> Any:
    """A mistake among the settings, with its place in the study."""
    place = {"loc": ("settings", *item["loc"]), "input": item["input"]}
    return {"type": item["type"], "ctx": item.get("ctx", {}), **place}


def imported(path: Any) -> Any:
    """What an import path names.

    Raises:
        ValueError: it is no such path, or what it names is not there or raises on import.
    """
    if not isinstance(path, str) or path.count(":") != 1:
        raise ValueError(f"{path!r} is no import path such as lab.recency:Recency")
    module, _, name = path.partition(":")
    try:
        found = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a file of the user's may raise anything
        fault = " ".join(f"{type(error).__name__}: {error}".split())[:MAX_FAULT]
        raise ValueError(
            f"{path} cannot be imported from {Path.cwd()}: {fault}: mend the file or its name"
        ) from error
    if not hasattr(found, name):
        names = [key for key, value in vars(found).items() if isinstance(value, type)]
        raise ValueError(f"{path}: {module} has no {name}{suggestion(name, names)}")
    return getattr(found, name)


def is_outside(part: type) -> bool:
    """Whether a class lives outside this package."""
    return part.__module__.partition(".")[0] != OWN_PACKAGE


def path_of(part: type) -> str:
    """The import path of a class."""
    return f"{part.__module__}:{part.__qualname__}"


def name_of(worker: Any) -> str:
    """How messages name what works in a training: a part, or what its `start` returned."""
    return worker.label() if hasattr(worker, "label") else path_of(type(worker))


def source_digest(part: type) -> str:
    """SHA-256 over the file of a class and the modules beside it that the file imports."""
    return module_digest(part.__module__)


def module_digest(module: str) -> str:
    """SHA-256 over the file of a module and the modules beside it that the file imports.

    Modules beside it are those below the folder from which the file's own package is imported:
    what is installed has a version, and is not followed.
    """
    spec = importlib.util.find_spec(module)
    assert spec and spec.origin, f"{module} has no file"
    root = Path(spec.origin).parents[module.count(".")]
    found: dict[str, str] = {}
    _collect(module, root.resolve(), found)
    return digest(sorted(found.items()))


def _collect(module: str, root: Path, found: dict[str, str]) -> None:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, AttributeError, ValueError):
        return
    if module in found or spec is None or not spec.origin:
        return
    file = Path(spec.origin).resolve()
    if not file.is_relative_to(root) or "site-packages" in file.parts or file.suffix != ".py":
        return
    found[module] = file_digest(file)
    for name in _imports(file, module):
        _collect(name, root, found)


def _imports(file: Path, module: str) -> list[str]:
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(start, package) if node.level else start
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return names


def _is_word(annotation: Any) -> bool:
    """Whether a field can hold one word alone: it tells the parts of an axis apart."""
    return get_origin(annotation) is Literal and len(get_args(annotation)) == 1


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return value.identity()
    if isinstance(value, Strict):
        return value.model_dump(mode="json")
    return value
