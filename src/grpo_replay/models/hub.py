"""Model folders from the Hub, at a commit."""

from pathlib import Path
from typing import TYPE_CHECKING

from grpo_replay.errors import ModelError

if TYPE_CHECKING:
    from grpo_replay.models.config import PretrainedModel
from grpo_replay.tasks.hub import _failures

# Weights as safetensors only, and no code of the model's own.
MODEL_FILES = ["*.json", "*.jinja", "*.safetensors", "*.model", "*.txt"]


def download_model(model: "PretrainedModel", variable: str) -> Path:
    """The folder of the client's cache that holds a model's files.

    Args:
        model: what to fetch.
        variable: the one that names a folder of local models, for the message.

    Raises:
        ModelError: where it cannot be had, with the files to put where.
    """
    from huggingface_hub import snapshot_download

    try:
        found = snapshot_download(model.name, revision=model.revision, allow_patterns=MODEL_FILES)
    except _failures() as error:
        folder = model.name.rsplit("/", 1)[-1]
        raise ModelError(
            f"{model.name} at {model.revision} cannot be had from the Hub "
            f"({type(error).__name__}): put its config.json, generation_config.json, tokenizer "
            f"files and *.safetensors into a folder {folder}, and name the folder around that in "
            f"{variable}"
        ) from error
    return Path(found)
