"""A study file of the form before parts: what it says, in the form of today."""

from typing import Any

import yaml

from grpo_replay.methods.method import RECORDED_DEFAULTS

# Where each setting of old lies now.
_GRID = {"tau_max": "replay.tau_max", "replay_ratio": "replay.ratio"}
_GRID |= {"alpha": "replay.priority.alpha"}
_TRAINING = {"clip_low": "loss.low", "clip_high": "loss.high", "dual_clip": "loss.dual_clip"}
_TRAINING |= {"advantage_epsilon": "advantage.eps", "priority_epsilon": "replay.priority.eps"}
_TRAINING |= {"replay_warmup": "replay.warmup", "buffer_capacity": "replay.capacity"}
_KINDS = {"loss": {"kind": "clipped"}, "advantage": {"kind": "group_normalised"}}


def old_form(content: dict) -> str | None:
    """What to write instead of the old keys of a study; None where it has none of them."""
    methods, grid = _mapping(content.get("methods")), content.get("grid")
    training = _mapping(content.get("training"))
    blocks = [_mapping(block) for block in grid] if isinstance(grid, list) else []
    found = [f"methods.{n}.composition" for n, m in methods.items() if "composition" in _mapping(m)]
    found += [f"grid.{i}.{key}" for i, b in enumerate(blocks) for key in _GRID if key in b]
    found += [f"training.{key}" for key in _TRAINING if key in training]
    if not found:
        return None
    new = {name: _method(_mapping(m), training) for name, m in methods.items()}
    lines = ["methods:", *(f"  {name}: {_flow(method)}" for name, method in new.items())]
    lines += ["grid:", *(f"  - {_flow(part)}" for block in blocks for part in _parts(block, new))]
    removed = [key for key in _TRAINING if key in training]
    remove = [f"and remove from training: {', '.join(removed)}"] if removed else []
    listed = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    return "\n".join([f"{listed}: of an earlier form of studies; write instead", *lines, *remove])


def _method(old: dict, training: dict) -> dict:
    """A method's parts, with the settings of `training` that are not the default."""
    if "composition" not in old and old.keys() - {"unit", "priority"}:
        return old  # of today's form
    new: dict[str, Any] = {}
    if (compose := old.get("composition", "none")) != "none":
        priority = {"kind": old.get("priority", "uniform")}
        new["replay"] = {"compose": compose, "unit": old.get("unit", "rollout")}
        new["replay"]["priority"] = priority
    for key, path in _TRAINING.items():
        *owners, name = path.split(".")
        if key in training and training[key] != RECORDED_DEFAULTS[name] and _takes(new, path):
            place = new
            for owner in owners:
                place = place.setdefault(owner, dict(_KINDS.get(owner, {})))
            place[name] = training[key]
    return new


def _parts(block: dict, methods: dict[str, dict]) -> list[dict]:
    """A grid block, once for the methods that take the same of its varied settings."""
    axes = {path: block[key] for key, path in _GRID.items() if key in block}
    axes = {p: v for p, v in axes.items() if v != [RECORDED_DEFAULTS[p.rpartition(".")[2]]]}
    kept = {key: value for key, value in block.items() if key not in _GRID}
    names = kept.get("methods")
    if not axes or not isinstance(names, list):
        return [kept]
    found: dict[tuple[str, ...], list[Any]] = {}
    for name in names:
        taken = tuple(path for path in axes if _takes(methods.get(str(name), {}), path))
        found.setdefault(taken, []).append(name)
    varied = {taken: {"vary": {path: axes[path] for path in taken}} for taken in found if taken}
    return [{**kept, "methods": names, **varied.get(taken, {})} for taken, names in found.items()]


def _takes(method: dict, path: str) -> bool:
    """Whether a method has this setting: none of replay without a store, and the uniform priority
    has neither power nor epsilon.
    """
    if not path.startswith("replay."):
        return True
    replay = method.get("replay")
    graded = replay and replay["priority"]["kind"] != "uniform"
    return bool(graded if path.startswith("replay.priority.") else replay)


def _mapping(value: Any) -> dict:
    return value if isinstance(value, dict) else {}


def _flow(value: dict) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False).strip()
