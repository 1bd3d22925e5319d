"""Real servers on 127.0.0.1, each with a process group of its own, killed at the end."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A program that listens on a port; `log` holds what it says."""

    def __init__(self, port: int, log: Path, folder: Path | None = None) -> None:
        self.port, self.log, self.folder = port, log, folder
        self.uri = f"http://127.0.0.1:{port}"
        self.process: subprocess.Popen | None = None

    def start(self, *command: str, **variables: str) -> None:
        """Start it, and wait until it listens."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=os.environ | variables,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        end = time.monotonic() + 600
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                assert self.process.poll() is None and time.monotonic() < end, self.log.read_text()
                time.sleep(0.2)

    def kill(self) -> None:
        """End it at once, with all that it started."""
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class MlflowServer(Server):
    """An MLflow server; its database outlives it."""

    def serve(self, database: str, artifacts: Path, **variables: str) -> None:
        """Start it for a database URI."""
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1"]
        command += ["--port", str(self.port), "--workers", "1", "--serve-artifacts"]
        command += ["--backend-store-uri", database, "--artifacts-destination", str(artifacts)]
        self.start(*command, MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false", **variables)
