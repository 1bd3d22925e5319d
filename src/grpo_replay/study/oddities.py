"""Values of a study that can be meant and are unusual: told as a run starts, never refused."""

from contextlib import suppress
from dataclasses import dataclass

from grpo_replay.methods.method import setting_of
from grpo_replay.study.config import Study


@dataclass(frozen=True)
class Usual:
    """Where a setting usually lies, and what follows outside."""

    low: float
    high: float
    outside: str


# By section and key; what is refused stands in `ranges`.
USUAL = {
    ("training", "learning_rate"): Usual(1e-8, 1e-3, "nothing is learnt, or the policy is lost"),
    ("training", "temperature"): Usual(0.3, 2.0, "rollouts are all alike, or noise"),
    ("training", "weight_decay"): Usual(0.0, 0.5, "weights vanish"),
    ("training", "group_size"): Usual(2, 256, "most of a step's work is one prompt's"),
    ("training", "gradient_clip"): Usual(1e-3, 1e3, "updates vanish, or nothing is clipped"),
    ("evaluation", "temperature"): Usual(0.1, 2.0, "answers are all alike, or noise"),
    ("evaluation", "top_p"): Usual(0.05, 1.0, "answers are all alike"),
    ("evaluation", "grade_timeout_seconds"): Usual(1.0, 120.0, "answers are cut off, or wait"),
}
USUAL_OF_A_SCALE = {
    "evaluation_max_tokens": Usual(8, 131_072, "answers are cut off, or loop"),
    "hours_train": Usual(1e-4, 1000, "plan and time limits follow it"),
    "hours_evaluate": Usual(1e-4, 1000, "plan and time limits follow it"),
}

USUAL_OF_A_METHOD = {
    "loss.low": Usual(0.01, 0.9, "hardly anything is learnt, or nothing clipped"),
    "loss.high": Usual(0.01, 10.0, "hardly anything is learnt, or nothing clipped"),
}


def oddities(study: Study) -> list[str]:
    """One line for every value that is unusual: its key, the value, and what follows."""
    found = [
        _line(f"{section}.{key}", getattr(getattr(study, section), key), usual)
        for (section, key), usual in USUAL.items()
    ]
    found += [
        _line(f"scales.{name}.{key}", getattr(scale, key), usual)
        for name, scale in study.scales.items()
        for key, usual in USUAL_OF_A_SCALE.items()
    ]
    found += _of_methods(study)
    return [line for line in found if line]


def _of_methods(study: Study) -> list[str]:
    """The same for the settings of the methods' parts, as far as a method has them."""
    found = []
    for name, method in study.methods.items():
        for path, usual in USUAL_OF_A_METHOD.items():
            with suppress(ValueError):  # a part of another kind has no such setting
                found.append(_line(f"methods.{name}.{path}", setting_of(method, path), usual))
        with suppress(ValueError):
            warmup, steps = setting_of(method, "replay.warmup"), study.training.steps
            if warmup >= steps:
                found.append(
                    f"methods.{name}.replay.warmup: {warmup} of {steps} steps: nothing is ever "
                    "replayed"
                )
    return found


def _line(key: str, value: float, usual: Usual) -> str:
    if usual.low <= value <= usual.high:
        return ""
    return f"{key}: {value:g} is unusual ({usual.low:g} to {usual.high:g}): {usual.outside}"
