"""What the environment may say to a job, and what it may not."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from grpo_replay.machine.surroundings import LEFT_OUT, SET, _matches, prepare, recorded

# Of those that accelerate reads: caches and credentials, and what only tells or tests something.
HARMLESS = {
    *("HF_HOME", "XDG_CACHE_HOME", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    *(
        "AWS_DEFAULT_REGION",
        "TRANSFORMERS_NO_ADVISORY_WARNINGS",
        "RUN_SLOW",
        "FOO",
        "FORK_LAUNCHED",
    ),
    *("PYTEST_XDIST_WORKER", "TPU_NAME", "NPROC", "CLEARML_TASK", "CLEARML_PROJECT"),
    *("PYTORCH_ENABLE_MPS_FALLBACK", "PT_HPU_LAZY_MODE", "DEEPSPEED_USE_HPU"),
    *("NCCL_P2P_DISABLE", "NCCL_IB_DISABLE", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
    *("PATH", "PYTHONPATH", "CCL_WORKER_COUNT", "KMP_AFFINITY", "KMP_BLOCKTIME"),
}


def test_every_variable_that_accelerate_reads_is_judged() -> None:
    """A new version of it may read further ones."""
    spec = find_spec("accelerate")
    assert spec and spec.origin
    names: set[str] = set()
    call = r"(?:environ(?:\.\w+)?[\[(]|getenv\(|parse_\w+_from_env\()"
    read = re.compile(call + r"""\s*["']([A-Z]\w+)["']""")
    listed = re.compile(r"get_int_from_env\(\s*\[([^\]]*)\]")
    for file in Path(spec.origin).parent.rglob("*.py"):
        if {"commands", "test_utils"} & set(file.parts):
            continue
        text = file.read_text(encoding="utf-8")
        names |= set(read.findall(text))
        names |= {name for group in listed.findall(text) for name in re.findall(r"\w+", group)}
    assert {"RANK", "PMI_SIZE", "ACCELERATE_MIXED_PRECISION"} <= names
    patterns = tuple(pattern for group in LEFT_OUT.values() for pattern in group)
    trackers = ("MLFLOW_*",)  # accelerate's own, which is never asked
    unknown = {n for n in names - HARMLESS if not _matches(n, patterns + trackers)}
    assert not unknown


@pytest.mark.parametrize(
    "name",
    [
        *("RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "TORCHELASTIC_RUN_ID", "PET_NNODES"),
        *("PMI_SIZE", "OMPI_COMM_WORLD_RANK", "ACCELERATE_MIXED_PRECISION", "ACCELERATE_USE_FSDP"),
        *("FSDP_VERSION", "NVIDIA_TF32_OVERRIDE", "USE_TF", "MLFLOW_RUN_ID", "PYTHONOPTIMIZE"),
    ],
)
def test_what_would_overrule_the_study_is_left_out_and_told(name: str) -> None:
    environment = {name: "1", "PATH": "/bin"}
    told = prepare(environment)
    assert name not in environment and environment["PATH"] == "/bin"
    assert len(told) == 1 and told[0].startswith(f"{name}: left out")
    assert prepare(environment) == []


def test_what_is_the_users_own_stays() -> None:
    own = {
        **{"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "HF_HOME": "/h", "HF_HUB_OFFLINE": "1"},
        **{"MLFLOW_TRACKING_URI": "http://x", "MLFLOW_TRACKING_TOKEN": "t", "TZ": "Asia/Tokyo"},
        **{"CUDA_VISIBLE_DEVICES": "1", "GRPO_REPLAY_DATA": "/d", "OMP_NUM_THREADS": "3"},
        **{"TORCH_COMPILE_DISABLE": "1", "LC_ALL": "C", "PYTHONPATH": "/p"},
    }
    environment = {**own, "MPLBACKEND": "module://nowhere"}
    assert prepare(environment) == []
    assert environment == {**own, **SET, "HF_HUB_DISABLE_TELEMETRY": "1"}


def test_the_record_holds_what_may_change_last_bits_and_no_secret() -> None:
    environment = {
        **{"OMP_NUM_THREADS": "4", "MKL_CBWR": "AVX2", "PATH": "/bin", "VLLM_API_KEY": "s3cret"},
        **{"TORCHINDUCTOR_REDIS_URL": "redis://u:p@h", "CUBLAS_WORKSPACE_CONFIG": ":16:8"},
    }
    assert recorded(environment) == {
        "CUBLAS_WORKSPACE_CONFIG": ":16:8",
        "MKL_CBWR": "AVX2",
        "OMP_NUM_THREADS": "4",
    }


DRAW = """
import sys
from pathlib import Path
from grpo_replay.reporting.figures.canvas import panels
with panels(Path(sys.argv[1]), 1, 1, 3, 2, "title") as (figure, axes):
    axes[0, 0].plot([1, 2], [3, 4], label="a")
    axes[0, 0].legend()
"""


def test_a_matplotlibrc_changes_no_figure(tmp_path: Path) -> None:
    drawn = []
    for style in ("", "axes.facecolor: red\nlines.linewidth: 9\nfont.family: serif\n"):
        folder = tmp_path / ("own" if style else "none")
        folder.mkdir()
        if style:
            (folder / "matplotlibrc").write_text(style)
        subprocess.run([sys.executable, "-c", DRAW, "figure"], cwd=folder, check=True)
        drawn.append((folder / "figure.svg").read_bytes())
    assert drawn[0] == drawn[1]
