"""Model folders that the user has put in place, and how many parameters a folder holds."""

import math
import os
from pathlib import Path

from grpo_replay.errors import ConfigError, DataError
from grpo_replay.files import read_json
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


def check_local_model(model: PretrainedModel) -> None:
    """Refuse a local folder that holds another model than the study names.

    Raises:
        ConfigError: where there is no folder, or its weights are of another size.
    """
    if folder := local_model(model):
        check_parameters(folder, model)


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
    for file in sorted(folder.glob("*.safetensors")):
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
