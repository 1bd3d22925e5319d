"""Record the modules that decide results, and the defaults, by the version that stands for them.

What a study leaves at its default is no part of what makes results stale: a default that changes
does so without a word, unless its version is raised.

A change of one of them may change results that are finished: its version in
`src/grpo_replay/study/versions.py` is then raised, so that they are made again. This script writes
`tools/recorded_versions.json`; a test compares. It refuses to record a change under a version that
is not raised, unless `--same-results` says that results stay as they are. Docstrings, comments and
layout of the code are left out.
"""

import argparse
import ast
import hashlib
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

REPOSITORY = Path(__file__).parents[1]
PACKAGE, RECORD = Path("src/grpo_replay"), Path("tools/recorded_versions.json")
VERSIONS = PACKAGE / "study/versions.py"
COMMAND = "python tools/record_versions.py"

# Patterns below the package. A module may stand under several versions.
MODULES = {
    "PROBLEMS_VERSION": (
        *("tasks/clock.py", "tasks/problems.py", "tasks/benchmarks.py", "tasks/hub.py"),
        "evaluation/select_prompts.py",
    ),
    "MODEL_VERSION": (
        *("models/from_scratch.py", "models/warm_start.py", "models/gradient.py"),
        *("models/make.py", "models/local.py", "models/hub.py"),
    ),
    "ALGORITHM_VERSION": (
        *("parts.py", "methods/*.py", "tasks/math/reward.py", "models/load.py"),
        *("training/trainer.py", "training/round.py", "training/collate.py"),
        *("training/arguments.py", "training/run_training.py", "training/seeds.py"),
        *("training/empty_updates.py", "training/finite.py", "training/prompt_length.py"),
    ),
    "SAMPLER_VERSION": (
        *("evaluation/sample.py", "evaluation/engines.py", "evaluation/nucleus.py"),
        *("evaluation/settings.py", "evaluation/finished.py", "models/folder.py"),
        *("models/end_tokens.py", "models/load.py"),
    ),
    "GRADER_VERSION": ("tasks/math/*.py", "evaluation/grade.py"),
    "SCORING_VERSION": (
        "evaluation/score.py",
        *("statistics/metrics.py", "statistics/intervals.py"),
    ),
}

# The version of the defaults of a module's sections and parts, by the longest prefix that fits.
SECTIONS = {
    "tasks.": "PROBLEMS_VERSION",
    "models.": "MODEL_VERSION",
    "": "ALGORITHM_VERSION",
    "study.config:Evaluation": "SAMPLER_VERSION",
}
Record = dict[str, dict[str, Any]]


def code_digest(source: str) -> str:
    """SHA-256 of what a module does: its syntax tree without docstrings; comments and layout are
    not in a tree.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [statement for statement in body if not _is_text(statement)]
    return hashlib.sha256(repr(_plain(tree)).encode()).hexdigest()


def _plain(value: object) -> object:
    """A syntax tree as tuples, without what is empty: Python's own dump differs by its version."""
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if not isinstance(value, ast.AST):
        return value
    fields = [(name, _plain(field)) for name, field in ast.iter_fields(value)]
    return type(value).__name__, [(n, v) for n, v in fields if v is not None and v != []]


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def defaults() -> dict[str, dict[str, Any]]:
    """The defaults of every section and part of the package, by version and `module:Class.key`; the
    words that name a part have none.
    """
    importlib.import_module("grpo_replay.study.config")  # and with it all that a study names
    base = importlib.import_module("grpo_replay.fields").Strict
    found: dict[str, dict[str, Any]] = {name: {} for name in MODULES}
    for section in _subclasses(base):
        package, _, module = section.__module__.partition(".")
        own = f"{module}:{section.__qualname__}"
        if package == "grpo_replay":
            version = SECTIONS[max((p for p in SECTIONS if own.startswith(p)), key=len)]
            for name, field in section.model_fields.items():
                if not (field.is_required() or _is_word(field.annotation)):
                    value = field.get_default(call_default_factory=True)
                    found[version][f"{own}.{name}"] = _json(value)
    return found


def _subclasses(section: type) -> Iterator[type]:
    for found in section.__subclasses__():
        yield found
        yield from _subclasses(found)


def _is_word(annotation: Any) -> bool:
    return get_origin(annotation) is Literal and len(get_args(annotation)) == 1


def _json(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def present(repository: Path = REPOSITORY) -> Record:
    """What stands for each version now: its number, the digest of each of its modules, and the
    defaults.
    """
    given = defaults()
    numbers = _numbers((repository / VERSIONS).read_text(encoding="utf-8"))
    package = repository / PACKAGE
    return {
        name: {
            "version": numbers[name],
            "modules": {
                str(path.relative_to(package)): code_digest(path.read_text(encoding="utf-8"))
                for pattern in patterns
                for path in sorted(package.glob(pattern))
            },
            "defaults": given[name],
        }
        for name, patterns in MODULES.items()
    }


def _numbers(source: str) -> dict[str, int]:
    """The constants of versions.py, read without importing the package."""
    return {
        node.targets[0].id: node.value.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }


def recorded(repository: Path = REPOSITORY) -> Record:
    """What was recorded; nothing where there is no file yet."""
    path = repository / RECORD
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def changes(old: Record, new: Record) -> dict[str, list[str]]:
    """What differs under each version, in words; a version under which nothing does is left out."""
    found = {name: _differences(old.get(name, {}), now) for name, now in new.items()}
    return {name: lines for name, lines in found.items() if lines}


def _differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Modules that are new, changed or gone. Of the defaults those that have changed: a new one
    makes no result another.
    """
    before, now = old.get("modules", {}), new["modules"]
    lines = [f"{key} is new" for key in sorted(now.keys() - before.keys())]
    lines += [f"{key} is gone" for key in sorted(before.keys() - now.keys())]
    both = sorted(before.keys() & now.keys())
    lines += [f"{key} has changed" for key in both if before[key] != now[key]]
    before, now = old.get("defaults", {}), new["defaults"]
    return lines + [
        f"the default of {key} was {before[key]!r} and is {now[key]!r}"
        for key in sorted(before.keys() & now.keys())
        if before[key] != now[key]
    ]


def advice(old: Record, new: Record) -> str:
    """What has to be done before the record holds again; empty where it does."""
    lines = []
    for name, found in changes(old, new).items():
        if old.get(name, {}).get("version") == new[name]["version"]:
            lines.append(
                f"{name} is still {new[name]['version']}, but {'; '.join(found)}: where results "
                f"change, raise {name} in {VERSIONS} and run `{COMMAND}`; where they stay, run "
                f"`{COMMAND} --same-results`"
            )
        else:
            lines.append(f"{name} is raised and not recorded: run `{COMMAND}`")
    # Nothing that makes results another, and yet to be written down.
    lines += [
        f"{name} {now['version']} or its list of defaults is not the one recorded: run `{COMMAND}`"
        for name, now in new.items()
        if old.get(name) != now and name not in changes(old, new)
    ]
    return "\n".join(lines)


def refusals(old: Record, new: Record) -> list[str]:
    """What must not be recorded: changes under a version that is not raised, and lowered ones."""
    lines = []
    for name, now in new.items():
        if name not in old:
            continue
        before, number = old[name]["version"], now["version"]
        if number < before:
            lines.append(f"{name} was {before} and is {number}: a version is never lowered")
        elif number == before and (found := _differences(old[name], now)):
            lines.append(f"{name} is still {number}, but {'; '.join(found)}")
    return lines


def main(arguments: list[str] | None = None, repository: Path = REPOSITORY) -> None:
    """Write the record, or say what is to be done before."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--same-results",
        action="store_true",
        help="the changes under versions that are not raised change no result",
    )
    options = parser.parse_args(arguments)
    old, new = recorded(repository), present(repository)
    refused = refusals(old, new)
    lowered = [line for line in refused if "never lowered" in line]
    if lowered or (refused and not options.same_results):
        sys.exit(
            "\n".join(lowered or refused) + f"\nRaise it in {VERSIONS}, so that finished results "
            "are made again; give --same-results where none can change. Nothing was recorded."
        )
    text = json.dumps(new, indent=1, sort_keys=True) + "\n"
    (repository / RECORD).write_text(text, encoding="utf-8")
    for name, found in changes(old, new).items():
        print(f"{name} {new[name]['version']}: {'; '.join(found)}")


if __name__ == "__main__":
    sys.path.insert(0, str(REPOSITORY / "src"))
    main()
