"""Model folders that the user has put in place, and how many parameters a folder holds."""

import math
import os
from importlib.util import find_spec
from pathlib import Path

from grpo_replay.errors import ConfigError, DataError
from grpo_replay.files import read_json
from grpo_replay.models.chat_template import check_chat
from grpo_replay.models.config import PretrainedModel

MODELS_VARIABLE = "GRPO_REPLAY_MODELS"


def local_model(model: PretrainedModel) -> Path | None:
    """The model's folder under `GRPO_REPLAY_MODELS`; None where that is unset and the Hub is to be
    asked.

    Raises:
        ConfigError: where the variable is set and the folder is not there.
    """
    folder = os.environ.get(MODELS_VARIABLE)
    if not folder:
        return None
    path = Path(folder, model.name.rsplit("/", 1)[-1])
    if not (path / "config.json").is_file():
        raise ConfigError(
            f"{path} is no model folder (no config.json): put {model.name} there, or unset "
            f"{MODELS_VARIABLE} to take it from the Hub"
        )
    return path


def check_local_model(model: PretrainedModel, tokenizer: bool = True) -> None:
    """Refuse a local folder that holds another model than the study names, or a tokenizer that
    cannot be used as the study uses it.

    Where transformers is not there, as beside conda environments, the base model's job looks at the
    tokenizer.

    Raises:
        ConfigError: where there is no folder, or its weights are of another size.
        ModelError: saying what is wrong with the tokenizer.
    """
    if folder := local_model(model):
        check_parameters(folder, model)
        if tokenizer and find_spec("transformers"):
            check_chat(folder, model.name)


def check_parameters(folder: Path, model: PretrainedModel) -> None:
    """Refuse a folder whose weights are not as many as the study says, wherever they come from.

    Raises:
        ConfigError: with both numbers.
    """
    if (found := count_parameters(folder)) != model.parameters:
        raise ConfigError(
            f"{folder}: its *.safetensors hold {found} parameters, `parameters` says "
            f"{model.parameters}: put {model.name} there, or correct `parameters`"
        )


def count_parameters(folder: Path) -> int:
    """How many parameters the weights of a model folder hold, by their headers alone; an output
    layer that is the input's transposed counts once.

    Raises:
        ConfigError: where a file of weights cannot be read; DataError: where config.json cannot.
    """
    from safetensors import SafetensorError, safe_open

    shapes: dict[str, list[int]] = {}
    for file in weight_files(folder):
        try:
            with safe_open(file, framework="np") as weights:
                names = weights.offset_keys()
                shapes |= {name: weights.get_slice(name).get_shape() for name in names}
        except (SafetensorError, OSError) as error:
            raise ConfigError(f"{file}: cannot be read ({error}); fetch it again") from error
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise DataError(f"{folder / 'config.json'}: no object in it; fetch it again")
    if config.get("tie_word_embeddings"):
        shapes.pop("lm_head.weight", None)
    return sum(math.prod(shape) for shape in shapes.values())


def weight_files(folder: Path) -> list[Path]:
    """The files of weights that transformers loads from a model folder; a second copy beside them
    (consolidated.safetensors, or shards beside one file) is none of them.

    Raises:
        ConfigError: where there are none; DataError: where their index cannot be read.
    """
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        return [whole]
    if not index.is_file():
        raise ConfigError(
            f"{folder}: no model.safetensors there, and no index of several; fetch the model "
            "again, or convert its weights"
        )
    content = read_json(index)
    shards = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(shards, dict) or not all(isinstance(name, str) for name in shards.values()):
        raise DataError(f"{index}: names no files of weights; fetch it again")
    return sorted({folder / Path(name).name for name in shards.values()})
