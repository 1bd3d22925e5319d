"""The base model of a scale, as a folder of its own: trained from scratch, or a pretrained one,
checked.
"""

import shutil
import warnings
from pathlib import Path

from grpo_replay.errors import GrpoReplayWarning, ModelError
from grpo_replay.files import atomic_folder, file_digest
from grpo_replay.models.chat_template import FIXED_DATE, check_chat, fix_date
from grpo_replay.models.config import FromScratchModel, Model, PretrainedModel
from grpo_replay.models.from_scratch import train_base_model
from grpo_replay.models.hub import MODEL_FILES, download_model
from grpo_replay.models.load import check_finite
from grpo_replay.models.local import MODELS_VARIABLE, check_parameters, local_model, weight_files
from grpo_replay.tasks.any_task import DEFAULT_TASK
from grpo_replay.tasks.config import ClockProblems, TrainingProblems
from grpo_replay.tasks.fingerprint import check_fingerprint
from grpo_replay.tasks.task import Task


def make_base_model(
    model: Model, problems: TrainingProblems, output: Path, task: Task = DEFAULT_TASK
) -> dict[str, float]:
    """Write the model folder `output` and return a few figures.

    Raises:
        ModelError: where a pretrained model cannot be had or lacks weights or a chat template.
    """
    if isinstance(model, FromScratchModel) and isinstance(problems, ClockProblems):
        return train_base_model(model, problems, output, task)
    return copy_pretrained(model, output)


def copy_pretrained(model: PretrainedModel, output: Path) -> dict[str, float]:
    """Copy a pretrained model, from its local folder or the Hub; it is checked before it counts.

    `<output>.source.json` keeps the SHA-256 of each of its files: written by the first copy,
    compared by every later one, wherever that takes the model from.
    """
    source = local_model(model) or download_model(model, MODELS_VARIABLE)
    with atomic_folder(output) as unfinished:
        for file in _used_files(source):
            shutil.copy(file, unfinished)
        check_chat(unfinished, model.name)
        check_parameters(source, model)
        check_finite(unfinished)
        record = output.with_name(f"{output.name}.source.json")
        digests = {file.name: file_digest(file) for file in unfinished.iterdir()}
        check_fingerprint(record, f"{model.name}@{model.revision}", digests, ModelError)
        if fix_date(unfinished):
            warnings.warn(
                f"{model.name}: its chat template prints the date of the day; every prompt has "
                f"{FIXED_DATE:%d %B %Y} there, so that all cells and a continued run read the same",
                GrpoReplayWarning,
                stacklevel=2,
            )
    size = sum(file.stat().st_size for file in output.glob("*.safetensors"))
    return {"gigabytes": size / 1e9}


def _used_files(source: Path) -> set[Path]:
    """What is copied: weights that transformers does not load stay where they are."""
    files = {file for pattern in MODEL_FILES for file in source.glob(pattern)}
    return files - set(source.glob("*.safetensors")) | set(weight_files(source))
