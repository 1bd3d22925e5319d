"""Holds a cell's lock, says so, and lets it go when its input ends. Arguments: folder, lease; with
"server" for the lease it is the lock of a vLLM server.

With END_IN_ORDER it unwinds when it is told to end, as a training with a run in MLflow does.
"""

import os
import signal
import sys
from pathlib import Path

from grpo_replay.errors import LockedError
from grpo_replay.training.cell_lock import cell_lock, server_lock

if __name__ == "__main__":
    if "END_IN_ORDER" in os.environ:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder, lease = Path(sys.argv[1]), sys.argv[2]
    server = lease == "server"
    try:
        with server_lock("vllm_server", folder) if server else cell_lock(folder, float(lease)):
            print("held", flush=True)
            sys.stdin.read()
    except LockedError as error:
        print(error, flush=True)
