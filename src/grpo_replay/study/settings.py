"""What config/config.yaml, `--config` and the environment say about a run of the workflow."""

import os
import re
import shlex
from pathlib import Path

from grpo_replay.errors import ConfigError, suggestion

STORE_FILE = "mlflow.db"  # MLflow's store, in the folder of results
SETTINGS = ("study", "results", "tracking_uri", "copy_models", "only", "retrain")
DEFAULT_RESULTS = "results"  # config/config.yaml's
TRACKING_VARIABLE = "MLFLOW_TRACKING_URI"
STUDY_VARIABLE = "GRPO_REPLAY_STUDY"  # what was typed: jobs know the study by its name alone
_CREDENTIALS = re.compile(r"//[^/\s]*@")
_ABSOLUTE = re.compile(r"sqlite:////|https?://|(postgresql|mysql)(\+\w+)?://")


def check_settings(config: dict) -> None:
    """Refuse a key of config/config.yaml or `--config` that nothing reads, and what is no switch.

    Raises:
        ConfigError: naming the key, and the one that was probably meant.
    """
    for switch in ("copy_models", "retrain"):
        value = config.get(switch, False)
        if not isinstance(value, bool):
            raise ConfigError(f"--config {switch}: {value!r} is neither True nor False")
    for key in config:
        if key not in SETTINGS:
            raise ConfigError(
                f"--config {key}: unknown key{suggestion(key, SETTINGS)}; "
                f"there are: {', '.join(SETTINGS)}"
            )


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
