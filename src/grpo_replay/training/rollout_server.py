"""The vLLM server that draws a training's rollouts on GPUs of its own: where it is, and whether it
fits.

Its address is a fact of the machines and not of the study, so that it stands in a variable.
"""

import json
import os
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from grpo_replay.errors import ConfigError
from grpo_replay.files import read_json
from grpo_replay.study.config import Training

SERVER_VARIABLE = "GRPO_REPLAY_VLLM_SERVER"
TIMEOUT_SECONDS = 10.0
HOW = "docs/clusters.md, *Rollouts from other nodes*, has the command"


def server_address() -> str:
    """The address, as the variable has it.

    Raises:
        ConfigError: where it is not set, or is no address of a server.
    """
    address = os.environ.get(SERVER_VARIABLE, "").rstrip("/")
    parts = urlsplit(address)
    # What follows host and port is not shown: it could be a password.
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ConfigError(
            f"training.rollout_engine: 'vllm_server' needs {SERVER_VARIABLE}=http://<host>:<port> "
            f"in the environment, no more and no less; {HOW}"
        )
    return address


def check_server(training: Training, start_model: Path) -> None:
    """Look whether the server holds the model, and draws as the training needs it.

    Args:
        training: precision and lengths.
        start_model: folder of the model that the training starts from. Its configuration is
            compared where the folder that the server was started with can be seen from here; its
            weights are not, because the first step hands over its own.

    Raises:
        ConfigError: naming everything that does not fit, or that no server answers.
    """
    served = _settings(server_address())
    tokens = training.max_prompt_tokens + training.max_completion_tokens
    wrong = []
    if served["dtype"] != f"torch.{training.precision}":
        wrong.append(f"--dtype {training.precision} (it has {served['dtype']})")
    if served["max_model_len"] < tokens:
        wrong.append(f"--max-model-len {tokens} (it has {served['max_model_len']})")
    # Those after temperature, which the trainer's are compared with.
    if served["logprobs_mode"] != "processed_logprobs":
        wrong.append(f"--logprobs-mode processed_logprobs (it has {served['logprobs_mode']})")
    theirs, ours = Path(served["model"], "config.json"), start_model / "config.json"
    if theirs.is_file() and read_json(theirs) != read_json(ours):
        wrong.append(f"the model {start_model} (it has {served['model']})")
    if wrong:
        raise ConfigError(
            f"the vLLM server at {server_address()} does not fit this training: start it with "
            f"{', '.join(wrong)}; {HOW}"
        )


def _settings(address: str) -> dict[str, Any]:
    """The section on its model of what a server says of itself."""
    question = f"{address}/server_info?config_format=json"
    try:
        with urlopen(question, timeout=TIMEOUT_SECONDS) as answer:
            said = json.load(answer)["vllm_config"]["model_config"]
            return {
                name: said[name] for name in ("model", "dtype", "max_model_len", "logprobs_mode")
            }
    except (OSError, HTTPException, ValueError, LookupError, TypeError) as error:
        raise ConfigError(
            f"no vLLM server answers at {address} ({SERVER_VARIABLE}) as TRL needs it ({error}): "
            f"start one with VLLM_SERVER_DEV_MODE=1; {HOW}"
        ) from error
