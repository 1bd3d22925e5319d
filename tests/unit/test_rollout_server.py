"""The address of a vLLM server, and what is said where there is none; a real one is in vllm_cpu."""

import socket
import threading
from contextlib import closing
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from grpo_replay.errors import ConfigError
from grpo_replay.study.file import load_study
from grpo_replay.training.rollout_server import SERVER_VARIABLE, check_server, server_address

TINY = Path(__file__).parents[1] / "fixtures" / "studies" / "tiny.yaml"
STUDY = load_study(TINY)
TRAINING = STUDY.training.model_copy(update={"rollout_engine": "vllm_server"})


def test_an_address_is_taken_without_a_slash_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SERVER_VARIABLE, "http://node7:8000/")
    assert server_address() == "http://node7:8000"


@pytest.mark.parametrize(
    "value", [None, "", "node7:8000", "ftp://node7", "http://", "http://u:p@n"]
)
def test_a_missing_or_wrong_address_is_told_without_its_password(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv(SERVER_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(SERVER_VARIABLE, value)
    with pytest.raises(ConfigError, match=f"needs {SERVER_VARIABLE}=http://<host>") as error:
        server_address()
    assert "u:p" not in str(error.value)


@pytest.mark.parametrize(
    "said",
    [
        "<html>",
        "[]",
        '{"vllm_config": "a text"}',
        '{"vllm_config": {}}',
        '{"vllm_config": {"model_config": {}}}',
    ],
)
def test_what_answers_and_is_no_vllm_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str
) -> None:
    (tmp_path / "server_info").write_text(said)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv(SERVER_VARIABLE, address)
        with pytest.raises(ConfigError, match=f"no vLLM server answers at {address}"):
            check_server(TRAINING, tmp_path)


def test_where_no_server_answers_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"http://127.0.0.1:{bound.getsockname()[1]}"
        monkeypatch.setenv(SERVER_VARIABLE, address)
        with pytest.raises(ConfigError, match=f"no vLLM server answers at {address}"):
            check_server(TRAINING, tmp_path)
