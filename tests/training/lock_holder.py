"""Holds a cell's lock, says so, and lets it go when its input ends. Arguments: folder, lease."""

import sys
from pathlib import Path

from grpo_replay.errors import LockedError
from grpo_replay.training.cell_lock import cell_lock

if __name__ == "__main__":
    try:
        with cell_lock(Path(sys.argv[1]), float(sys.argv[2])):
            print("held", flush=True)
            sys.stdin.read()
    except LockedError as error:
        print(error, flush=True)
