"""Start MLflow's pages for the store that config/config.yaml and the environment name.

python -m grpo_replay.tracking.ui [port]
"""

import os
import sys
from pathlib import Path

import yaml

from grpo_replay.settings import tracking_uri, without_credentials


def main() -> None:
    """Serve a local store on 127.0.0.1; of a server, say where it is."""
    config = yaml.safe_load(Path("config/config.yaml").read_text(encoding="utf-8"))
    uri = tracking_uri(config)
    if uri.startswith("http"):
        print(f"The store is a server, which shows its own pages: {without_credentials(uri)}")
        return
    os.environ.setdefault("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")
    port = sys.argv[1] if len(sys.argv) > 1 else "5000"
    command = [sys.executable, "-m", "mlflow", "ui", "--host", "127.0.0.1", "--port", port]
    # Not as an argument: it may hold a password, and every user sees those of a process.
    os.environ["MLFLOW_BACKEND_STORE_URI"] = uri
    os.execv(sys.executable, command)


if __name__ == "__main__":
    main()
