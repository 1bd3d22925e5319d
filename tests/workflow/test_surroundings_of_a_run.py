"""A whole run under what shells, notebooks and launchers leave in the environment, and under a
locale without Greek letters: the same results, and a line for what was left out.
"""

import json
import shutil
from pathlib import Path

from repository_copy import Workflow, copy_repository

from grpo_replay.files import folder_digest

LEFT_BEHIND = {
    **{"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "192.0.2.1"},
    **{"ACCELERATE_MIXED_PRECISION": "bf16", "ACCELERATE_USE_DEEPSPEED": "true"},
    **{"MPLBACKEND": "module://matplotlib_inline.backend_inline", "MLFLOW_RUN_ID": "0" * 32},
    **{"MLFLOW_EXPERIMENT_NAME": "another", "PYTHONOPTIMIZE": "2", "USE_TF": "1"},
    **{"PYTHONIOENCODING": "ascii", "LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0"},
    **{"PYTHONUTF8": "0", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "7"},
    **{"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "PMI_SIZE": "4", "PMI_RANK": "3"},
}
CELL = "s/ours-seed42"


def learned(workflow: Workflow) -> list:
    """What the cell's results hold, but for times."""
    cell = workflow.results / "cells" / CELL
    lines = (cell / "train/metrics.jsonl").read_text().splitlines()
    records = [{k: v for k, v in json.loads(x).items() if "perf/" not in k} for x in lines]
    answers = [path.read_bytes() for path in sorted(cell.glob("samples/*.parquet"))]
    return [records, folder_digest(cell / "model"), answers, (cell / "scores.json").read_text()]


def test_what_is_left_in_the_environment_changes_no_cell(
    finished: Workflow, tmp_path: Path
) -> None:
    workflow = copy_repository(tmp_path / "odd")
    target = f"results/tiny/cells/{CELL}/scores.json"
    done = workflow.run(target, **LEFT_BEHIND)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    assert "Warning: ACCELERATE_MIXED_PRECISION, ACCELERATE_USE_DEEPSPEED: left out" in text
    assert "MASTER_ADDR, PMI_RANK, PMI_SIZE, RANK, WORLD_SIZE: left out" in text
    assert learned(workflow) == learned(finished)
    origin = json.loads((workflow.results / "tracking" / CELL / "origin.json").read_text())
    assert origin["variables"]["OMP_NUM_THREADS"] == "1"


def test_no_personal_setting_changes_a_figure_or_a_table(
    finished: Workflow, tmp_path: Path
) -> None:
    workflow = Workflow(tmp_path / "copied")
    shutil.copytree(finished.folder, workflow.folder)
    own = tmp_path / "home" / "matplotlib"
    own.mkdir(parents=True)
    (own / "matplotlibrc").write_bytes("axes.facecolor: red  # für mich\n".encode("latin-1"))
    variables = LEFT_BEHIND | {"XDG_CONFIG_HOME": str(own.parent), "MPLCONFIGDIR": str(own)}
    files = [f"results/tiny/{name}" for name in ("figures/accuracy.svg", "tables/main.md")]
    rules = ["--forcerun", "figures", "tables"]
    done = workflow.run(*files, *rules, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    for file in files:
        assert (workflow.folder / file).read_bytes() == (finished.folder / file).read_bytes()
