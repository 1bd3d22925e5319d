"""What the tests of this folder share with those of the workflow."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow"))
