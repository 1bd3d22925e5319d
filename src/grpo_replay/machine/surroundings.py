"""What the environment may say to a job: the libraries below read far more variables than a user
knows of, and some of them decide what is trained, or make a process wait for others for ever.

Every variable is of one of three kinds. Those that would overrule the study, or that another
launcher has left, are left out; those that a job needs in one way are set; those that may change
the last bits of a number, and are a machine's own affair, stand in the cell's record. A variable
that is in none of the lists reaches the job as it is: addresses, credentials, caches, `SLURM_*`.
"""

from collections.abc import Mapping, MutableMapping
from fnmatch import fnmatchcase

# Patterns of names by the reason that a user is told.
LEFT_OUT = {
    "the study says with how many processes a cell trains, and they are started for it": (
        *("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME"),
        *("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"),
        *("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_*", "PET_*"),
        # What accelerate reads where RANK is not set: Slurm's `srun --mpi=pmi2` sets some.
        *("PMI_*", "MPI_LOCAL*", "OMPI_COMM_WORLD_*", "MV2_COMM_WORLD_*"),
    ),
    "the study says in which precision and how sharded a cell trains": (
        *("ACCELERATE_*", "FSDP_*", "PARALLELISM_CONFIG_*"),
        *("XLA_USE_BF16", "XLA_DOWNCAST_BF16", "USE_TORCH_XLA", "PJRT_DEVICE"),
        *("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "NVIDIA_TF32_OVERRIDE", "PYTORCH_TUNABLEOP_*"),
    ),
    "checkpoints are read as they were written": (
        *("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"),
    ),
    "the libraries are used with torch, and with their own kernels": (
        *("USE_TORCH", "USE_TF", "USE_JAX", "USE_FLAX", "USE_HUB_KERNELS"),
    ),
    "every cell has its own run in MLflow": (
        *("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_NESTED_RUN"),
        *("MLFLOW_TAGS", "MLFLOW_ENABLE_ASYNC_LOGGING"),
    ),
    "jobs run in Python's usual mode": (
        *("PYTHONOPTIMIZE", "PYTHONWARNINGS", "PYTHONINSPECT", "PYTHONDEVMODE"),
        *("PYTHONIOENCODING", "PYTHONLEGACYWINDOWSSTDIO"),
    ),
}
SET = {
    "PYTHONUTF8": "1",  # files and logs, whatever the locale
    "PYTHONHASHSEED": "0",  # the order of a set is that of every other run
    # No display, and no style of one's own. (An empty file counts as a style that changes nothing.)
    "MPLBACKEND": "agg",
    "MATPLOTLIBRC": "/dev/null",
}
DEFAULTS = {
    # Tiny models gain nothing from threads, and jobs side by side lose by them.
    "OMP_NUM_THREADS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
RECORDED = (
    *("OMP_*", "MKL_*", "OPENBLAS_*", "KMP_*", "DNNL_*", "ONEDNN_*", "ATEN_CPU_CAPABILITY"),
    *("CUBLAS_*", "CUDNN_*", "TORCH_CUDNN_*", "TORCH_BLAS_*", "DISABLE_ADDMM_CUDA_LT", "NCCL_*"),
    *("FLASH_ATTENTION_*", "PYTORCH_*", "TORCH_COMPILE_*", "TORCHDYNAMO_*", "TORCHINDUCTOR_*"),
    *("VLLM_*", "LD_PRELOAD"),
)
_SECRET = ("*KEY*", "*TOKEN*", "*SECRET*", "*PASSWORD*", "*URL*")


def prepare(environment: MutableMapping[str, str]) -> list[str]:
    """Leave out and set what the lists say, for this process and those that it will start.

    Returns a line for each reason for which something was left out.
    """
    told = []
    for reason, patterns in LEFT_OUT.items():
        names = sorted(name for name in environment if _matches(name, patterns))
        for name in names:
            del environment[name]
        if names:
            told.append(f"{', '.join(names)}: left out of the jobs' environment, for {reason}")
    environment.update(SET)
    for name, value in DEFAULTS.items():
        environment.setdefault(name, value)
    return told


def recorded(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that may change a number's last bits, for the record; never a secret."""
    names = sorted(name for name in environment if _matches(name, RECORDED))
    return {name: environment[name] for name in names if not _matches(name, _SECRET)}


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
