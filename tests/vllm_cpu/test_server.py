"""Training steps whose rollouts a vLLM server draws, a real one on 127.0.0.1, on a CPU.

Weights go to it by files: `train.py` says why.
"""

import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM lives in an environment of its own: make test-vllm")

import pandas as pd
from random_model import save_random_model
from runs import TINY, agrees_in_every_step, metrics, train
from servers import Server, free_port

from grpo_replay.errors import ConfigError, TrainingError
from grpo_replay.study.file import load_study
from grpo_replay.training.rollout_engine import SeededClient
from grpo_replay.training.rollout_server import SERVER_VARIABLE, check_server

TRAINING = load_study(TINY).training
# vLLM cannot cut a seeded prompt in pieces on a CPU: its generators there have no offset.
WHOLE_PROMPTS = ["--no-enable-chunked-prefill", "--max-num-batched-tokens", "8192"]
LIMITS = ["--enforce-eager", "--max-model-len", "512", "--kv-cache-memory-bytes", "268435456"]
NUMBERS = ["--dtype", "float32", "--logprobs-mode", "processed_logprobs", "--max-logprobs", "-1"]
START = ["--host", "127.0.0.1", *LIMITS, *NUMBERS, *WHOLE_PROMPTS]


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a server; it ends with the tests, and its engine with it."""
    started = Server(free_port(), tmp_path_factory.mktemp("server") / "log")
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command += ["--port", str(started.port), *START]
    try:
        started.start(*command, VLLM_SERVER_DEV_MODE="1", OMP_NUM_THREADS="1")
        yield started.uri
        started.process.terminate()  # in order: it has shared memory to give back
        started.process.wait(timeout=60)
    finally:
        started.kill()


@pytest.fixture(scope="module")
def whole(model: Path, server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(model, folder, seed=42, **{SERVER_VARIABLE: server})
    return folder


def rollouts(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "cell" / "train" / "rollouts.parquet")


def test_sampler_and_trainer_agree_also_after_an_update(whole: Path) -> None:
    agrees_in_every_step(whole)


def test_rollouts_differ_from_each_other(whole: Path) -> None:
    long = rollouts(whole).query("step == 1 and length > 6")  # short ones may meet by chance
    assert len(long) > 8
    assert not long.text.duplicated().any()


def test_the_next_cell_begins_with_its_own_weights(
    whole: Path, model: Path, server: str, tmp_path: Path
) -> None:
    """The server holds what the last step of another cell has left."""
    train(model, tmp_path, seed=43, **{SERVER_VARIABLE: server})
    assert metrics(tmp_path)[0]["inference/logprob_gap_max"] < 1e-4
    first = [rollouts(folder).query("step == 1") for folder in (whole, tmp_path)]
    assert list(first[0].problem_id) == list(first[1].problem_id)
    assert (first[0].text.to_numpy() == first[1].text.to_numpy()).mean() < 0.5


def test_a_run_that_was_stopped_draws_what_it_would_have_drawn(
    whole: Path, model: Path, server: str, tmp_path: Path
) -> None:
    train(model, tmp_path, seed=42, die_at=2, **{SERVER_VARIABLE: server})
    assert "continues after 1" in train(model, tmp_path, seed=42, **{SERVER_VARIABLE: server})
    drawn = ["step", "problem_id", "text"]  # log-probabilities differ in the last bits
    pd.testing.assert_frame_equal(rollouts(whole)[drawn], rollouts(tmp_path)[drawn])


def test_two_processes_train_on_what_one_server_draws(
    whole: Path, model: Path, server: str, tmp_path: Path
) -> None:
    """The first of them asks for both, and hands over weights of which each holds a part."""
    train(model, tmp_path, seed=42, processes=2, **{SERVER_VARIABLE: server})
    assert all(record["inference/logprob_gap_max"] < 1e-4 for record in metrics(tmp_path))
    drawn = ["problem_id", "text", "reward"]
    first = [rollouts(folder).query("step == 1")[drawn] for folder in (whole, tmp_path)]
    pd.testing.assert_frame_equal(*first)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, None),
        ({"precision": "bfloat16"}, "--dtype bfloat16 .it has torch.float32"),
        ({"max_completion_tokens": 1000}, r"--max-model-len \d+ .it has 512"),
    ],
)
def test_a_server_that_does_not_fit_is_refused(
    model: Path, server: str, monkeypatch: pytest.MonkeyPatch, changes: dict, told: str | None
) -> None:
    monkeypatch.setenv(SERVER_VARIABLE, server)
    training = TRAINING.model_copy(update=changes)
    if told is None:
        check_server(training, model)
        return
    with pytest.raises(ConfigError, match=told):
        check_server(training, model)


def test_a_server_with_another_model_is_refused(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SERVER_VARIABLE, server)
    other = save_random_model(tmp_path / "other", hidden_size=64)
    with pytest.raises(ConfigError, match=f"the model {other} .it has"):
        check_server(TRAINING, other)


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Yield what takes connections and says nothing, as a server that dies at work."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        listening.settimeout(10)
        yield listening


def test_a_server_that_dies_is_asked_no_second_time(server: str, silent: socket.socket) -> None:
    """Started anew it would answer, with the weights that it was started with."""
    client = SeededClient(base_url=server)
    client.base_url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    client.session.mount(client.base_url, client.session.get_adapter(server))
    with ThreadPoolExecutor(1) as executor:
        asked = executor.submit(client.generate, [[1, 2]], generation_kwargs={"seed": 1})
        connection, (_, port) = silent.accept()
        assert connection.recv(100).startswith(b"POST /v1/completions")
        assert keepalive(port)
        connection.close()
        with pytest.raises(TrainingError, match=f"server at {client.base_url} has failed .*start"):
            asked.result()
    silent.settimeout(0)
    with pytest.raises(BlockingIOError):
        silent.accept()


def keepalive(port: int) -> bool:
    """Whether the system looks after the connection from a port: its timer is the second kind."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    (timer,) = [line[5] for line in lines if line[1].endswith(f":{port:04X}")]
    return timer.startswith("02:")


def test_what_the_server_refuses_is_told(server: str) -> None:
    with pytest.raises(TrainingError, match="has failed .Request failed: 400"):
        SeededClient(base_url=server).generate([[1] * 600], generation_kwargs={"seed": 1})
