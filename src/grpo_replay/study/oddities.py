"""Values of a study that can be meant and are unusual: told as a run starts, never refused."""

from dataclasses import dataclass

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
    ("training", "clip_low"): Usual(0.01, 0.9, "hardly anything is learnt, or nothing clipped"),
    ("training", "clip_high"): Usual(0.01, 10.0, "hardly anything is learnt, or nothing clipped"),
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
    found.append(_warm_up(study))
    return [line for line in found if line]


def _warm_up(study: Study) -> str:
    training = study.training
    replaying = any(method.composition != "none" for method in study.methods.values())
    if replaying and training.replay_warmup >= training.steps:
        steps = f"{training.replay_warmup} of {training.steps} steps"
        return f"training.replay_warmup: {steps}: nothing is ever replayed"
    return ""


def _line(key: str, value: float, usual: Usual) -> str:
    if usual.low <= value <= usual.high:
        return ""
    return f"{key}: {value:g} is unusual ({usual.low:g} to {usual.high:g}): {usual.outside}"
