"""The helpers of the trainer's and the workflow's tests, and the folder of a user's own parts."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "training"), str(HERE.parent / "workflow")]
