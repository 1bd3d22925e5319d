# Everything that the rules look up: the study, its cells, and where things lie. Nothing here runs a job.
import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod

# Jobs, also those in conda environments, import the package from here.
SOURCE = str(Path(workflow.basedir, "src"))
sys.path.insert(0, SOURCE)
os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")])))
# Tiny models gain nothing from threads, and jobs side by side lose by them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from grpo_replay import grid, plan
from grpo_replay.settings import check_settings, find_study, tracking_uri
from grpo_replay.study_file import load_study
from grpo_replay.errors import GrpoReplayError
from grpo_replay.preflight import check_conda, check_inputs, source_files

try:
    check_settings(config)
    check_conda(DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method)
    STUDY_FILE = find_study(str(config["study"]), Path(workflow.basedir, "config", "studies"))
    STUDY = load_study(STUDY_FILE)
    TRACKING_URI = tracking_uri(config)
    CELLS = grid.expand(STUDY)
    CHOSEN = grid.select(CELLS, str(config["only"]) or None)
    check_inputs(STUDY_FILE, STUDY)
except GrpoReplayError as error:
    raise WorkflowError(str(error)) from None

RESULTS = f"{config['results']}/{STUDY.study}"
LOGS = f"{RESULTS}/logs"
os.environ.update(MLFLOW_TRACKING_URI=TRACKING_URI)
TABLE_FORMATS = ["csv", "md", "tex"]
FIGURE_FORMATS = ["png", "svg"]
TABLES = expand(f"{RESULTS}/tables/{{name}}.{{ext}}", name=["main", "age"], ext=TABLE_FORMATS)
FIGURES = expand(
    f"{RESULTS}/figures/{{name}}.{{ext}}",
    name=["accuracy", "tau_max", "training", "clip"],
    ext=FIGURE_FORMATS,
)


def lookup(kind, known, name):
    """What the study calls so; a name in a target that it does not have is the user's mistake."""
    if name not in known:
        raise WorkflowError(f"{STUDY_FILE}: no {kind} {name!r}; there are: {', '.join(known)}")
    return known[name]


def cell_of(wildcards):
    """The cell of a job."""
    return lookup("cell", CELLS, wildcards.cell)


def scale_of(wildcards):
    """The scale of a job, or of its cell."""
    name = cell_of(wildcards).scale if "cell" in wildcards.keys() else wildcards.scale
    return lookup("scale", STUDY.scales, name)


def benchmark_of(wildcards):
    """The benchmark of a job."""
    return lookup("benchmark", STUDY.benchmarks, wildcards.benchmark)


def cell_files():
    """What `cells` makes: all that the chosen cells promise, so that a lost file is made again."""
    kinds = {True: ["train/metrics.jsonl", "train/replay.parquet", "train/rollouts.parquet"]}
    kinds[True] += ["train/settings.json", "model"]
    answers = expand(
        "{kind}/{benchmark}.parquet", kind=["samples", "grades"], benchmark=STUDY.benchmarks
    )
    return [
        f"{RESULTS}/cells/{name}/{file}"
        for name, cell in CHOSEN.items()
        for file in ["scores.json", "samples/manifest.json", *answers, *kinds.get(cell.trained, [])]
    ]


def start_model(wildcards):
    """The model that every method of a cell's scale starts from."""
    return f"{RESULTS}/{grid.start_model(STUDY, cell_of(wildcards).scale)}"


def policy(wildcards):
    """The model that a cell is evaluated with: its own, or the untrained one."""
    if cell_of(wildcards).trained:
        return f"{RESULTS}/cells/{wildcards.cell}/model"
    return start_model(wildcards)


def training_problems(wildcards):
    """The training problems of a cell: those that its scale's first pass chose, or all."""
    if STUDY.prompt_selection:
        return f"{RESULTS}/data/{cell_of(wildcards).scale}/selected.jsonl"
    return f"{RESULTS}/data/problems.jsonl"


def benchmark_files():
    """The problem files of all benchmarks, in the order of the study."""
    return [f"{RESULTS}/data/benchmarks/{name}.jsonl" for name in STUDY.benchmarks]


def position(wildcards):
    """Which cell of how many."""
    return f"{list(CELLS).index(cell_of(wildcards).cell) + 1}/{len(CELLS)}"


def opening(jobs):
    """What a run will make, and about how long that takes."""
    return plan.opening(STUDY, CHOSEN, Path(RESULTS), jobs)


def closing():
    """Where everything is."""
    return plan.closing(STUDY, CELLS, Path(RESULTS), TRACKING_URI)
