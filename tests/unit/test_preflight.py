"""A local model folder is the model that the study names, as far as its size tells."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from transformers import AutoModelForCausalLM

from grpo_replay.errors import ConfigError, DataError
from grpo_replay.models.config import PretrainedModel
from grpo_replay.models.load import load_model
from grpo_replay.models.local import check_local_model, count_parameters


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local model folder that may be edited."""
    monkeypatch.setenv("GRPO_REPLAY_MODELS", str(tmp_path))
    return Path(shutil.copytree(tiny_model, tmp_path / "tiny"))


def named(parameters: int) -> PretrainedModel:
    return PretrainedModel(
        source="pretrained", name="org/tiny", revision="0" * 40, parameters=parameters
    )


def test_a_folder_with_another_number_of_parameters_is_refused(folder: Path) -> None:
    count = load_model(folder).num_parameters()
    check_local_model(named(count))
    with pytest.raises(
        ConfigError, match=f"hold {count} parameters, `parameters` says {count + 1}"
    ):
        check_local_model(named(count + 1))


def test_a_lost_part_of_the_weights_is_refused(folder: Path) -> None:
    count = count_parameters(folder)
    weights = load_file(folder / "model.safetensors")
    name, lost = next(iter(weights.items()))
    save_file({n: w for n, w in weights.items() if n != name}, folder / "model.safetensors")
    with pytest.raises(ConfigError, match=f"hold {count - lost.size} parameters"):
        check_local_model(named(count))
    (folder / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match="no model.safetensors there, and no index"):
        check_local_model(named(count))


@pytest.mark.parametrize("tied", [True, False])
def test_a_tied_output_layer_counts_once(tmp_path: Path, tied: bool) -> None:
    """Some repositories store it although it is the input's: Qwen3-0.6B does."""
    layer = np.zeros((5, 3), np.float32)
    first = {"model.embed_tokens.weight": layer, "model.norm.weight": np.zeros(3, np.float32)}
    save_file({**first, "lm_head.weight": layer.copy()}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"tie_word_embeddings": tied}))
    assert count_parameters(tmp_path) == (18 if tied else 33)


def shard(folder: Path) -> None:
    """Save the weights as several files with an index, by transformers itself."""
    load_model(folder).save_pretrained(folder / "shards", max_shard_size="20KB")
    for file in (folder / "shards").glob("model*"):
        file.rename(folder / file.name)
    assert len(list(folder.glob("model-*.safetensors"))) > 2


@pytest.mark.parametrize("copy", ["consolidated.safetensors", "model.safetensors"])
def test_a_second_copy_of_the_weights_counts_once(folder: Path, copy: str) -> None:
    """Mistral's repositories have one, with names of their own."""
    count = count_parameters(folder)
    shard(folder)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    assert count_parameters(folder) == count
    save_file({f"own.{name}": weight for name, weight in weights.items()}, folder / copy)
    check_local_model(named(count))


def test_what_is_counted_is_what_transformers_loads(folder: Path) -> None:
    """One file before shards: the shards here are another model's, and torn ones at that."""
    count = count_parameters(folder)
    shard(folder)
    for file in folder.glob("model-*.safetensors"):
        file.write_bytes(b"torn")
    loaded = AutoModelForCausalLM.from_pretrained(folder)
    assert loaded.num_parameters() == count == count_parameters(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match="model-00001-of-.*: cannot be read"):
        count_parameters(folder)


@pytest.mark.parametrize("text", ["[]", "{}", '{"weight_map": {"a": 1}}', "{"])
def test_an_index_that_is_none_is_named(folder: Path, text: str) -> None:
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    (folder / "model.safetensors.index.json").write_text(text)
    with pytest.raises(DataError, match="model.safetensors.index.json: n"):
        count_parameters(folder)


def test_a_torn_file_is_named(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(ConfigError, match="model.safetensors: cannot be read"):
        check_local_model(named(1))


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_configuration_that_is_none_is_named(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(DataError, match="config.json: no"):
        check_local_model(named(1))
