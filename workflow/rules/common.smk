# Everything that the rules look up: the study, its cells, and where things lie. Nothing here runs a job.
import gc
import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.settings.types import DeploymentMethod

# Jobs, also those in conda environments, import the package from here.
SOURCE = str(Path(workflow.basedir, "src"))
sys.path.insert(0, SOURCE)
os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")])))
# Tiny models gain nothing from threads, and jobs side by side lose by them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

# Thousands of jobs are millions of objects that stay: looking for garbage among them again and again
# takes a good part of the time.
gc.set_threshold(100_000, 20, 50)

from grpo_replay import announcements, devices, gpu_memory, grid, plan
from grpo_replay.settings import STUDY_VARIABLE, TRACKING_VARIABLE
from grpo_replay.settings import config_text, find_study, read_settings, tracking_uri
from grpo_replay.oddities import oddities
from grpo_replay.rollout_server import server_address
from grpo_replay.study_file import load_study
from grpo_replay.errors import GrpoReplayError, listing, suggestion
from grpo_replay.failed_jobs import FailedJobs
from grpo_replay.preflight import check_conda, check_inputs, source_files

logger.addHandler(FailedJobs())

try:
    # As typed: Snakemake makes numbers of what looks like one, and None of nothing.
    config.update(read_settings(config, workflow.config_settings.config_args or []))
    check_conda(DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method)
    STUDY_FILE = find_study(config["study"], Path(workflow.basedir, "config", "studies"))
    STUDY = load_study(STUDY_FILE)
    TRACKING_URI = tracking_uri(config)
    CELLS = grid.expand(STUDY)
    POSITIONS = {name: f"{n}/{len(CELLS)}" for n, name in enumerate(CELLS, start=1)}
    RESULTS = f"{config['results']}/{STUDY.study}"
    CHOSEN = plan.choose(STUDY, CELLS, config["only"], Path(RESULTS))
    check_inputs(STUDY_FILE, STUDY, tokenizers=workflow.is_main_process)
except GrpoReplayError as error:
    raise WorkflowError(str(error)) from None

LOGS = f"{RESULTS}/logs"
os.environ.update({TRACKING_VARIABLE: TRACKING_URI, STUDY_VARIABLE: config["study"]})
if STUDY.hub_cache:
    os.environ.update(HF_HUB_CACHE=str(Path(STUDY.hub_cache).expanduser().absolute()))
TABLE_FORMATS = ["csv", "md", "tex", "html"]
FIGURE_FORMATS = ["png", "svg", "pdf"]
# Table 7 holds the paper's column itself.
NUMBERED = [f"table{number:02d}" for number in range(1, 14)]
COMPARED = [f"{name}_comparison" for name in NUMBERED if name != "table07"]
TABLES = expand(
    f"{RESULTS}/tables/{{name}}.{{ext}}",
    name=["main", "age", *NUMBERED, *COMPARED, "published_check"],
    ext=TABLE_FORMATS,
)
# One process draws these: starting it costs more than a figure.
FURTHER_FIGURES = """
    figure2 figure3 pass_at_k accuracy_length method_tau_max gain learning replay_ages reuse
    drift log_ratio groups buffer completions seconds
""".split()
FIGURES = expand(
    f"{RESULTS}/figures/{{name}}.{{ext}}",
    name=["accuracy", "tau_max", "training", "clip", *FURTHER_FIGURES],
    ext=FIGURE_FORMATS,
)
TABLES += [f"{RESULTS}/tables/verifiers.csv"]


def lookup(kind, known, name):
    """What the study calls so; a name in a target that it does not have is the user's mistake."""
    if name not in known:
        meant = suggestion(name, known)
        raise WorkflowError(f"{STUDY_FILE}: no {kind} {name!r}{meant}; there are: {listing(known)}")
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


def cell_files(wildcards):
    """What `cells` makes: scores, and what a cell that is begun has lost."""
    lost = plan.lost_files(STUDY, CHOSEN, Path(RESULTS))
    return score_files() + [f"{RESULTS}/{file}" for file in lost]


def score_files():
    """The scores of the chosen cells."""
    return [f"{RESULTS}/cells/{name}/scores.json" for name in CHOSEN]


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
    return POSITIONS[cell_of(wildcards).cell]


def study_plan():
    """The plan of the chosen cells; imported here, since a run needs no tables to start."""
    from grpo_replay.reporting.cost import plan_text

    memory = known_memory() or gpu_memory.PAPERS_GPUS
    return plan_text(STUDY, CHOSEN, Path(RESULTS), declared("gpu"), memory)


def declared(resource):
    """What `--resources` says: `gpu`, how many GPUs of this machine a run may use; `gpu_gb`, the
    memory of each; 0 where it says nothing.
    """
    return workflow.global_resources.get(resource).value or 0


def known_memory():
    """The memory of each GPU, as declared, else as this machine's driver tells it; None where
    neither says, or a cluster's GPUs do the work.
    """
    if declared("gpu_gb"):
        return gpu_memory.GpuMemory(1e9 * declared("gpu_gb"), "declared by --resources gpu_gb")
    there = devices.offered_memory() if workflow.local_exec else None
    return there and gpu_memory.GpuMemory(there, "the smallest of this machine's GPUs")


def planned_rules():
    """The rules that have jobs in this run."""
    return {job.rule.name for job in planned_jobs()}


def planned_jobs():
    """The jobs of this run, finished ones too."""
    return list(workflow.persistence.dag.needrun_jobs(exclude_finished=False))


def check_hardware():
    """Refuse to start what does not fit the GPUs declared and there; a cluster refuses by itself.

    By the study's numbers: Snakemake cuts what a job asks for down to what is declared.
    """
    try:
        training = {j.wildcards.cell for j in planned_jobs() if j.rule.name == "train_policy"}
        sampling = {j.wildcards.cell for j in planned_jobs() if j.rule.name == "sample_answers"}
        wanted = [STUDY.scales[CELLS[cell].scale].gpus for cell in training]
        wanted += [min(STUDY.scales[CELLS[cell].scale].gpus, 1) for cell in sampling]
        if workflow.local_exec:
            most = max(wanted, default=0)
            offered = devices.offered_gpus() if most else 0
            plan.check_gpus(STUDY, most, declared("gpu"), offered, config_text(config))
        if training and STUDY.training.rollout_engine == "vllm_server":
            server_address()
        scales = sorted({CELLS[cell].scale for cell in training})
        if any(wanted) and (memory := known_memory()):
            gpu_memory.check_memory(STUDY, scales, memory, declared("gpu"))
    except GrpoReplayError as error:
        raise WorkflowError(str(error)) from None


def check_retraining():
    """Stop a run that would remove trained models: Snakemake removes what a job makes before it."""
    if config["retrain"] and not workflow.touch:
        return
    dag = workflow.persistence.dag
    reasons = {
        str(job.output.model): str(dag.reason(job))
        for job in planned_jobs()
        if job.rule.name in ("train_policy", "warm_start") and Path(job.output.model).is_dir()
        # `--touch` removes nothing, but must not pass a model of other settings off as current.
        and not (workflow.touch and is_current(job))
    }
    try:
        plan.check_retraining(reasons, config_text(config))
    except GrpoReplayError as error:
        raise WorkflowError(str(error)) from None


def is_current(job):
    """Whether a training's record holds the present settings; a warm start has no such record."""
    if job.rule.name == "warm_start":
        return True
    return plan.is_trained(STUDY, CELLS[job.wildcards.cell], Path(RESULTS))


def missed():
    """How often the MLflow store was out of reach at the end of a run: once more, and the next run
    brings it up to date.
    """
    count = Path(RESULTS, "tracking", "misses.txt")
    return count.read_text() if count.is_file() else "0"


def opening(cores):
    """What a run will make, and about how long that takes."""
    trainings = sum(job.rule.name == "train_policy" for job in planned_jobs())
    return announcements.opening(STUDY, CHOSEN, Path(RESULTS), cores, declared("gpu"), trainings)


def closing():
    """Where everything is."""
    return announcements.closing(STUDY, CELLS, Path(RESULTS), TRACKING_URI)


def table_files(name):
    """The files of a table, with caption and labels for the report."""
    entry = {"caption": f"../report/{name}_table.rst", "category": "Tables"}
    labels = {ext: {"table": name, "format": ext} for ext in TABLE_FORMATS}
    stem = f"{RESULTS}/tables/{name}"
    return [report(f"{stem}.{ext}", labels=labels[ext], **entry) for ext in TABLE_FORMATS]


def figure_files(name):
    """The files of a figure, with caption and labels for the report."""
    entry = {"caption": f"../report/figures/{name}.rst", "category": "Figures"}
    labels = {ext: {"figure": name, "format": ext} for ext in FIGURE_FORMATS}
    stem = f"{RESULTS}/figures/{name}"
    return [report(f"{stem}.{ext}", labels=labels[ext], **entry) for ext in FIGURE_FORMATS]
