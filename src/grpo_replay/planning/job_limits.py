"""Which cells a run will make, what of them is there, and what their jobs may take."""

import math

from grpo_replay.errors import ConfigError
from grpo_replay.study.config import Scale, Study


def check_retraining(reasons: dict[str, str], config: str) -> None:
    """Refuse a run that would remove trained models; `reasons` says why, by the model's path, and
    `config` is what follows `--config` (`settings.config_text`).

    Raises:
        ConfigError: with every model, its reason and both repairs.
    """
    if not reasons:
        return
    listed = "\n".join(f"  {model}: {reason}" for model, reason in sorted(reasons.items()))
    raise ConfigError(
        f"trained models: this run would remove {len(reasons)} and train them again:\n{listed}\n"
        f"Nothing has been removed. If that is meant: --config {config} retrain=True. If "
        'only times have changed, and the results have no records: see "Moving results" '
        "in README.md"
    )


def minutes_allowed(hours: float, attempt: int) -> int:
    """The time limit that a cluster gets for a job: twice its estimate and ten minutes, and as much
    again with every attempt.
    """
    return math.ceil(120 * hours + 10) * attempt


def memory_mb(scale: Scale, attempt: int) -> int:
    """The main memory that a cluster gets for a training, as much again with every attempt."""
    return math.ceil(1000 * scale.memory_gb) * attempt


def process_memory_mb(scale: Scale, attempt: int) -> int:
    """The share of that which a job of one process gets: it holds one copy of the model."""
    return math.ceil(memory_mb(scale, attempt) / max(scale.gpus, 1))


def check_gpus(study: Study, wanted: int, declared: int, there: int, config: str) -> None:
    """Refuse a run one of whose jobs needs more GPUs than are declared, or than this machine has;
    and one that declares more than that, whose jobs would share them.

    `config` is what follows `--config` (`settings.config_text`).

    Raises:
        ConfigError: with both numbers and the repair.
    """
    if wanted > declared:
        raise ConfigError(
            f"study {study.study}: a job needs {wanted} GPUs and {declared} are declared: look at "
            f"`snakemake plan --cores 1 --config {config}`, then say --resources gpu={wanted} (or "
            "more) where they are"
        )
    if wanted > there:
        raise ConfigError(
            f"study {study.study}: a job needs {wanted} GPUs and this machine offers {there}: run "
            "it where they are (profiles/slurm, profiles/kubernetes), or narrow it with "
            "--config only='<glob>'"
        )
    if wanted and declared > there:
        raise ConfigError(
            f"study {study.study}: {declared} GPUs are declared and this machine offers {there}: "
            f"say --resources gpu={there}"
        )
