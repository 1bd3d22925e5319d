"""The base model of a scale, as a folder of its own: trained from scratch, or a pretrained one,
checked.
"""

import os
import shutil
from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from transformers import AutoConfig, AutoTokenizer

from grpo_replay.errors import ModelError
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
    """Copy a pretrained model, from its local folder or the Hub, beside `output`, check it, and
    rename.
    """
    source = local_model(model) or _download(model)
    beside = output.with_name(output.name + ".unfinished")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    for pattern in WANTED:
        for file in source.glob(pattern):
            shutil.copy(file, beside)
    _check(beside, model)
    size = sum(file.stat().st_size for file in beside.glob("*.safetensors"))
    shutil.rmtree(output, ignore_errors=True)
    os.replace(beside, output)
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
    AutoConfig.from_pretrained(folder, local_files_only=True)
    if not AutoTokenizer.from_pretrained(folder, local_files_only=True).chat_template:
        raise ModelError(f"{model.name}: its tokenizer has no chat template; take a model that has")
