"""The base model of a scale, as a folder of its own: trained from scratch, or a pretrained one,
checked.
"""

import shutil
from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from transformers import AutoConfig, AutoTokenizer

from grpo_replay.errors import ModelError
from grpo_replay.files import whole_folder
from grpo_replay.preflight import MODELS_VARIABLE, local_model
from grpo_replay.sources import (
    ClockProblems,
    FromScratchModel,
    Model,
    PretrainedModel,
    TrainingProblems,
)
from grpo_replay.training.base_model import train_base_model

# Weights as safetensors only, and no code of the model's own.
WANTED = ["*.json", "*.jinja", "*.safetensors", "*.model", "*.txt"]


def make_base_model(model: Model, problems: TrainingProblems, output: Path) -> dict[str, float]:
    """Write the model folder `output` and return a few figures.

    Raises:
        ModelError: where a pretrained model cannot be had or lacks weights or a chat template.
    """
    if isinstance(model, FromScratchModel) and isinstance(problems, ClockProblems):
        return train_base_model(model, problems, output)
    return copy_pretrained(model, output)


def copy_pretrained(model: PretrainedModel, output: Path) -> dict[str, float]:
    """Copy a pretrained model, from its local folder or the Hub; it is checked before it counts."""
    source = local_model(model) or _download(model)
    with whole_folder(output) as unfinished:
        for pattern in WANTED:
            for file in source.glob(pattern):
                shutil.copy(file, unfinished)
        _check(unfinished, model)
    size = sum(file.stat().st_size for file in output.glob("*.safetensors"))
    return {"gigabytes": size / 1e9}


def _download(model: PretrainedModel) -> Path:
    try:
        return Path(snapshot_download(model.name, revision=model.revision, allow_patterns=WANTED))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ModelError(
            f"{model.name} at {model.revision} cannot be had from the Hub "
            f"({type(error).__name__}): put its folder into some folder and name that in "
            f"{MODELS_VARIABLE}"
        ) from error


def _check(folder: Path, model: PretrainedModel) -> None:
    if not list(folder.glob("*.safetensors")):
        raise ModelError(f"{model.name}: no *.safetensors in its folder; convert the weights first")
    try:
        AutoConfig.from_pretrained(folder, local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{model.name}: its configuration or tokenizer cannot be read "
            f"({str(error).splitlines()[0]}); fetch the folder again"
        ) from error
    if not tokenizer.chat_template:
        raise ModelError(f"{model.name}: its tokenizer has no chat template; take a model that has")
