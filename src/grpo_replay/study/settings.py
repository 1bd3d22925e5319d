"""What config/config.yaml, `--config` and the environment say about a run of the workflow."""

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from grpo_replay.errors import ConfigError, suggestion

STORE_FILE = "mlflow.db"  # MLflow's store, in the folder of results
TEXTS = ("study", "results", "tracking_uri", "only")
SWITCHES = ("copy_models", "retrain")
SETTINGS = (*TEXTS, *SWITCHES)
DEFAULT_RESULTS = "results"  # config/config.yaml's
TRACKING_VARIABLE = "MLFLOW_TRACKING_URI"
STUDY_VARIABLE = "GRPO_REPLAY_STUDY"  # what was typed: jobs know the study by its name alone
_CREDENTIALS = re.compile(r"//[^/\s]*@")
_ABSOLUTE = re.compile(r"sqlite:////|https?://|(postgresql|mysql)(\+\w+)?://")


def read_settings(config: dict, typed: Iterable[str]) -> dict[str, str | bool]:
    """The settings as they were written: `only=` is empty, `results=08` keeps its zero.

    Args:
        config: What Snakemake made of config/config.yaml and `--config`, in which a text that looks
            like a number is one.
        typed: What stands behind `--config`, as `key=value`.

    Raises:
        ConfigError: an unknown key, naming the one that was probably meant; a number in a file
            where a text belongs; no study or results; a switch that is neither true nor false.
    """
    for key in config:
        if key not in SETTINGS:
            raise ConfigError(
                f"--config {key}: unknown key{suggestion(key, SETTINGS)}; "
                f"there are: {', '.join(SETTINGS)}"
            )
    pairs = (text.partition("=")[::2] for text in typed)
    # Quotes around a value fall away, as in Snakemake.
    given = config | {key: value.strip("'\"") for key, value in pairs}
    settings: dict[str, str | bool] = {key: _text(key, given.get(key)) for key in TEXTS}
    settings |= {key: _switch(key, given.get(key, False)) for key in SWITCHES}
    return settings


def _text(key: str, value: object) -> str:
    text = "" if value is None else value
    if not isinstance(text, str):
        raise ConfigError(f"config.yaml: {key}: {text!r} is no text; put it in quotes")
    if key in ("study", "results") and not text.strip():
        raise ConfigError(f"--config {key}: it is empty; give a name, or leave it out")
    if key == "results" and set("{}") & set(text):
        raise ConfigError(f"--config results: {text!r} has braces, which are Snakemake's own")
    return text


def _switch(key: str, value: object) -> bool:
    try:
        return {"true": True, "false": False}[str(value).lower()]
    except KeyError:
        raise ConfigError(f"--config {key}: {value!r} is neither true nor false") from None


def config_text(config: dict) -> str:
    """What a person types behind `--config` to be at the same study and results again.

    `only` is not among it, nor the store of MLflow: its URI may hold a password, and this text
    stands in tables.
    """
    texts = [f"study={config['study']}"]
    if config["results"] != DEFAULT_RESULTS:
        texts.append(f"results={config['results']}")
    return shlex.join(texts)


def find_study(name: str, folder: Path) -> Path:
    """A study of a folder by name, or a file of one's own: whatever has a slash or an ending."""
    if "/" in name or name.endswith((".yaml", ".yml")):
        return Path(name)
    return folder / f"{name}.yaml"


def without_credentials(text: str) -> str:
    """A text in which no URI shows the name and password that it holds."""
    return _CREDENTIALS.sub("//", text)


def tracking_uri(config: dict) -> str:
    """Where MLflow keeps its runs: the variable, else the setting, else sqlite in the results.

    Raises:
        ConfigError: where it is not absolute: jobs may run in other folders.
    """
    given = os.environ.get(TRACKING_VARIABLE)
    uri = given or config["tracking_uri"]
    if not uri:
        return f"sqlite:///{Path(config['results']).resolve()}/{STORE_FILE}"
    if not _ABSOLUTE.match(uri):
        source = TRACKING_VARIABLE if given else "--config tracking_uri"
        raise ConfigError(
            f"{source}: {without_credentials(uri)!r} is no absolute URI of a store; give "
            "sqlite:////a/path/mlflow.db (four slashes), http://host:port or postgresql://..."
        )
    return uri
