"""Train a cell in a process of its own: python train_here.py JOB.json"""

import json
import sys
from pathlib import Path

from grpo_replay.training.launch import train_cell

if __name__ == "__main__":
    train_cell(json.loads(Path(sys.argv[1]).read_text()), [])
