"""The base model of a scale, as a folder of its own: trained from scratch, or a pretrained one,
checked.
"""

import shutil
from pathlib import Path

from transformers import AutoConfig, AutoTokenizer, GenerationConfig
from transformers.utils import GENERATION_CONFIG_NAME

from grpo_replay.errors import ModelError
from grpo_replay.files import file_digest, whole_folder
from grpo_replay.models.config import FromScratchModel, Model, PretrainedModel
from grpo_replay.models.from_scratch import train_base_model
from grpo_replay.models.hub import MODEL_FILES, download_model
from grpo_replay.models.load import check_finite
from grpo_replay.models.local import MODELS_VARIABLE, check_parameters, local_model
from grpo_replay.tasks.any_task import DEFAULT_TASK
from grpo_replay.tasks.config import ClockProblems, TrainingProblems
from grpo_replay.tasks.fingerprint import check_record
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
    with whole_folder(output) as unfinished:
        for pattern in MODEL_FILES:
            for file in source.glob(pattern):
                shutil.copy(file, unfinished)
        _check(unfinished, model)
        check_parameters(source, model)
        check_finite(unfinished)
        record = output.with_name(f"{output.name}.source.json")
        digests = {file.name: file_digest(file) for file in unfinished.iterdir()}
        check_record(record, f"{model.name}@{model.revision}", digests, ModelError)
    size = sum(file.stat().st_size for file in output.glob("*.safetensors"))
    return {"gigabytes": size / 1e9}


def _check(folder: Path, model: PretrainedModel) -> None:
    if not list(folder.glob("*.safetensors")):
        raise ModelError(f"{model.name}: no *.safetensors in its folder; convert the weights first")
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        # Code of the model's own would not be there; it is not asked for either.
        AutoConfig.from_pretrained(folder, **local)
        tokenizer = AutoTokenizer.from_pretrained(folder, **local)
        if (folder / GENERATION_CONFIG_NAME).is_file():
            GenerationConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # a file of another shape fails anywhere, by any type
        raise ModelError(
            f"{model.name}: its configuration or tokenizer cannot be read "
            f"({type(error).__name__}: {' '.join(str(error).split())}); fetch the folder again"
        ) from error
    if not tokenizer.chat_template:
        raise ModelError(f"{model.name}: its tokenizer has no chat template; take a model that has")
