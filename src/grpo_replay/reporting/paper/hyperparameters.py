"""Table 7 of the paper: its hyperparameters beside those of a study."""

from contextlib import suppress

from grpo_replay.methods.method import setting_of
from grpo_replay.reporting.labels import axis_name
from grpo_replay.reporting.paper import published
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Row, Table
from grpo_replay.study.config import Study

# What every study trains with: training/run_training.py has no setting for these.
FIXED = {"learning_rate_warmup": "0", "kl_beta": "0"}
PAPER_BETAS = (0.9, 0.999)
_MICRO_BATCH = "micro_batch_per_gpu_"
_OF_METHODS = {
    "clip_epsilon_low": "loss.low",
    "clip_epsilon_high": "loss.high",
    "dual_clip": "loss.dual_clip",
    "advantage_epsilon": "advantage.eps",
}


def table07(source: Source) -> Table:
    """Table 7: every setting that the paper lists, the study's value and the paper's."""
    paper = {line["setting"]: line for line in published.rows("table07")}
    study = study_values(source.study)
    rows = []
    for name in _in_order(list(paper), list(study)):
        line = paper.get(name, {"value": None, "unit": "rollouts"})
        own = study.get(name)
        known = own is not None and line["value"] is not None
        equal = None if not known else "yes" if _same(own, line["value"]) else "no"
        labels = {"setting": name, "value": own, "paper": line["value"], "equal": equal}
        labels |= {"study": source.study.study, "unit": axis_name(line["unit"])}
        rows.append(Row(labels, {}))
    return Table(
        title=f"Table 7: hyperparameters ({source.study.title})",
        index={
            "setting": "Setting",
            "value": "This study",
            "paper": "Paper",
            "equal": "Equal",
            "unit": "Unit or remark",
        },
        columns=[],
        rows=rows,
        notes=[
            "Settings, not measurements: no n, no interval. What else differs from the paper "
            "stands in the README, Deviations.",
            f"Micro-batches of the scales {', '.join(source.study.scales)}; a dash: no such scale.",
        ],
        hidden=("study",),
    )


def study_values(study: Study) -> dict[str, str]:
    """The study's value of each setting of Table 7, as text."""
    training = study.training
    betas = tuple(training.adam_betas)
    optimizer = "AdamW" if betas == PAPER_BETAS else f"AdamW, betas {betas[0]:g} and {betas[1]:g}"
    seeds = dict.fromkeys(seed for block in study.grid for seed in block.seeds)
    numbers = {
        "train_batch_size": training.rollouts_per_step,
        "group_size": training.group_size,
        "max_prompt_length": training.max_prompt_tokens,
        "max_response_length": training.max_completion_tokens,
        "learning_rate": training.learning_rate,
        "ppo_mini_batch_size": training.mini_batch,
        "weight_decay": training.weight_decay,
        "gradient_clip": training.gradient_clip,
        "training_steps": training.steps,
    }
    numbers |= {f"{_MICRO_BATCH}{name}": s.micro_batch for name, s in study.scales.items()}
    texts = {name: _text(value) for name, value in numbers.items()}
    texts |= {name: _of_methods(study, path) for name, path in _OF_METHODS.items()}
    return texts | FIXED | {"optimizer": optimizer, "seed": ", ".join(map(str, seeds))}


def _of_methods(study: Study, path: str) -> str:
    """The value of a setting of the methods' parts; several where they differ."""
    found: list[str] = []
    for method in study.methods.values():
        with suppress(ValueError):  # a part of another kind has no such setting
            found.append(_text(setting_of(method, path)))
    return ", ".join(dict.fromkeys(found)) or "none"


def _text(value: float) -> str:
    return f"{value:g}".replace("e-0", "e-")


def _in_order(paper: list[str], study: list[str]) -> list[str]:
    """The paper's order; micro-batches of further scales stand after the paper's."""
    further = [name for name in study if name not in paper]
    after = max(i for i, name in enumerate(paper) if name.startswith(_MICRO_BATCH)) + 1
    return [*paper[:after], *further, *paper[after:]]


def _same(own: str, paper: str) -> bool:
    try:
        return float(own) == float(paper)
    except ValueError:
        return own == paper
