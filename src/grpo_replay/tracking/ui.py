"""Start MLflow's pages for the store that config/config.yaml and the environment name.

python -m grpo_replay.tracking.ui [port]
"""

import os
import sys
from pathlib import Path

import yaml
from mlflow import MlflowClient

from grpo_replay.study.settings import tracking_uri, without_credentials
from grpo_replay.tracking.store import prepare, sqlite_file


def addresses(uri: str, port: str) -> str:
    """The page of every study in the store, in the view that `views` keeps: a line each."""
    studies = [e for e in MlflowClient(uri).search_experiments() if e.name != "Default"]
    page = f"http://127.0.0.1:{port}/#/experiments/{{}}/runs?viewStateShareKey=cells"
    return "\n".join(f"  {study.name}: {page.format(study.experiment_id)}" for study in studies)


def main() -> None:
    """Serve a local store on 127.0.0.1; of a server, say where it is."""
    config = yaml.safe_load(Path("config/config.yaml").read_text(encoding="utf-8"))
    uri = tracking_uri(config)
    if uri.startswith("http"):
        print(f"The store is a server, which shows its own pages: {without_credentials(uri)}")
        return
    if file := sqlite_file(uri):
        prepare(file, Path(config["results"]))
    os.environ.setdefault("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")
    port = sys.argv[1] if len(sys.argv) > 1 else "5000"
    print(
        f"The cells of each study, the best first (docs/mlflow.md):\n{addresses(uri, port)}",
        flush=True,
    )
    command = [sys.executable, "-m", "mlflow", "ui", "--host", "127.0.0.1", "--port", port]
    # Not as an argument: it may hold a password, and every user sees those of a process.
    os.environ["MLFLOW_BACKEND_STORE_URI"] = uri
    os.execv(sys.executable, command)


if __name__ == "__main__":
    main()
