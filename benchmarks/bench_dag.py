"""What `snakemake -n` takes: on paper.yaml without any model on disk, and on 5,000 cells.

Wall time depends on what else the machine does, CPU time less so. Both studies list what is checked
here against the study itself.

    python benchmarks/bench_dag.py
"""

import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "workflow"))
from repository_copy import Workflow, listed_jobs

from grpo_replay.study.cells import expand
from grpo_replay.study.config import Study
from grpo_replay.study.file import load_study

ROOT = Path(__file__).parents[1]
STUDIES = ROOT / "config" / "studies"
CELLS = 5_000


def large_study(folder: Path) -> Path:
    """Write paper.yaml with a grid of 4,997 trained cells and the three base models."""
    content = yaml.safe_load((STUDIES / "paper.yaml").read_text(encoding="utf-8"))
    scales = list(content["scales"])
    vary = {"replay.tau_max": list(range(1, 42)), "replay.ratio": [0.25, 0.5, 0.75, 1]}
    vary["replay.priority.alpha"] = [0.5, 1]
    ours = {"scales": scales, "methods": ["ours"], "seeds": [1, 2, 3, 4, 5], "vary": vary}
    rest = CELLS - len(scales) - len(scales) * 41 * 4 * 2 * 5
    grpo = {"scales": scales[:1], "methods": ["grpo"], "seeds": list(range(1, rest + 1))}
    path = folder / "many.yaml"
    path.write_text(yaml.safe_dump(content | {"study": "many", "grid": [ours, grpo]}))
    return path


def dry_run(study: Path, results: Path) -> tuple[Counter, float, float]:
    """Jobs by rule, seconds of wall time, and seconds of CPU."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = Workflow(ROOT).run("-n", f"results={results}", study=str(study))
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr
    return (
        Counter(listed_jobs(done)),
        wall,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )


def check_jobs(study: Study, jobs: Counter) -> None:
    """Every cell is trained (if it is to be), sampled, graded and scored once."""
    cells = expand(study).values()
    wanted = dict.fromkeys(("sample_answers", "grade_answers", "score_cell"))
    wanted = dict.fromkeys(wanted, len(cells)) | {
        "train_policy": sum(cell.trained for cell in cells),
        "make_base_model": len({cell.scale for cell in cells}),
        "make_benchmark": len(study.benchmarks),
    }
    assert {rule: jobs[rule] for rule in wanted} == wanted, jobs


def main() -> None:
    """Time both, and print one line each."""
    with tempfile.TemporaryDirectory() as folder:
        for path, limit in ((STUDIES / "paper.yaml", 5), (large_study(Path(folder)), 60)):
            study = load_study(path)
            jobs, wall, cpu = dry_run(path, Path(folder, "results"))
            check_jobs(study, jobs)
            print(
                f"snakemake -n, {len(expand(study)):,} cells, {jobs.total():,} jobs: "
                f"{wall:.1f} s ({cpu:.1f} s of CPU), wanted {limit} s"
            )


if __name__ == "__main__":
    main()
