"""A model that vLLM on a CPU can serve."""

from pathlib import Path

import pytest
from random_model import save_random_model


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a random model; vLLM's attention on CPUs needs heads of 32 or more."""
    return save_random_model(tmp_path_factory.mktemp("vllm") / "model", hidden_size=128)
