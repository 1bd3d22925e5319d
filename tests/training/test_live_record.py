"""The link by which a cell shows its steps while it trains."""

import os
import shutil
from pathlib import Path

from grpo_replay.training.run_training import _show_live


def test_the_live_record_is_found_where_cells_lie_on_another_disk(tmp_path: Path) -> None:
    """And after a move of the results, where they do not."""
    results, disk = tmp_path / "a" / "results", tmp_path / "other" / "deep" / "disk"
    for folder in (results, disk):
        folder.mkdir(parents=True)
    live = results / "checkpoints" / "cell" / "metrics.jsonl"
    live.parent.mkdir(parents=True)
    live.write_text("a step")
    (results / "cells").symlink_to(disk)
    _show_live(live, results / "cells" / "s" / "cell" / "train")
    assert (results / "cells/s/cell/train/metrics.jsonl").read_text() == "a step"
    (results / "cells").unlink()
    _show_live(live, results / "cells" / "s" / "cell" / "train")
    shutil.move(results, tmp_path / "moved")
    link = tmp_path / "moved" / "cells/s/cell/train/metrics.jsonl"
    assert link.read_text() == "a step" and not os.path.isabs(os.readlink(link))
