"""Study files: each committed one loads, ids are canonical, and importing this costs nothing."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from snakemake.cli import parse_config

from grpo_replay.errors import ConfigError
from grpo_replay.methods.method import with_setting
from grpo_replay.models.config import Model
from grpo_replay.planning.job_limits import memory_mb, minutes_allowed, process_memory_mb
from grpo_replay.planning.messages import closing
from grpo_replay.study.axes import axes_of
from grpo_replay.study.cells import (
    base_model,
    benchmark_problems,
    expand,
    model_parameters,
    resolve,
    select,
    training_settings,
    value_text,
)
from grpo_replay.study.config import Scale
from grpo_replay.study.file import load_study
from grpo_replay.study.settings import config_text, find_study, read_settings, tracking_uri
from grpo_replay.tasks.config import BenchmarkProblems, ClockBenchmark

REPOSITORY = Path(__file__).parents[2]
STUDIES = sorted((REPOSITORY / "config" / "studies").rglob("*.yaml"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_committed_study_loads(path: Path) -> None:
    study = load_study(path)
    cells = expand(study)
    assert len(cells) > len(study.scales)
    for cell in cells.values():
        assert resolve(study, cell)["cell"]["cell"] == cell.cell


def test_nano_is_the_grid_that_was_asked_for() -> None:
    cells = expand(load_study(REPOSITORY / "config" / "studies" / "nano.yaml"))
    methods = {"base", "grpo", "uniform-pool", "sigma_g-pool", "ours"}
    for scale in ("xs", "s", "m"):
        assert {c.method for c in cells.values() if c.scale == scale} == methods
    ages = {axes_of(c).tau_max for c in cells.values() if c.method == "ours" and c.scale == "s"}
    assert ages == {1, 10, 30, 60}
    assert "s/ours-seed42" in cells


def test_chance_of_a_clock_is_one_hour() -> None:
    study = load_study(REPOSITORY / "config" / "studies" / "nano.yaml")
    benchmark = next(iter(study.benchmarks.values()))
    assert isinstance(benchmark, ClockBenchmark) and benchmark.chance == 10.0


def test_a_cluster_is_asked_for_more_with_every_attempt() -> None:
    scale = load_study(REPOSITORY / "config" / "studies" / "nano.yaml").scales["s"]
    assert [minutes_allowed(1.5, attempt) for attempt in (1, 2)] == [190, 380]
    assert [memory_mb(scale, attempt) for attempt in (1, 3)] == [4000, 12000]
    assert [process_memory_mb(scale, attempt) for attempt in (1, 3)] == [4000, 12000]
    on_gpus = scale.model_copy(update={"gpus": 8, "memory_gb": 256.0})
    assert (memory_mb(on_gpus, 1), process_memory_mb(on_gpus, 1)) == (256000, 32000)


def test_a_number_has_one_text() -> None:
    assert [value_text(x) for x in (0.5, 0.50, 1.0, 1, 1e-6)] == ["0.5", "0.5", "1", "1", "1e-06"]


def test_a_glob_that_matches_nothing_lists_the_cells() -> None:
    cells = expand(load_study(REPOSITORY / "config" / "studies" / "nano.yaml"))
    assert list(select(cells, "xs/grpo-*")) == ["xs/grpo-seed42"]
    assert list(select(cells, "s/grpo-*,xs/grpo-*,xs/base")) == [
        *("xs/base", "xs/grpo-seed42", "s/grpo-seed42")
    ]
    with pytest.raises(ConfigError, match="only='m/none' matches no cell"):
        select(cells, "xs/grpo-*,m/none")
    with pytest.raises(ConfigError, match="matches no cell; there are: xs/base"):
        select(cells, "xl/*")
    with pytest.raises(ConfigError, match="did you mean 'm/grpo-seed42'"):
        select(cells, "m/grpo-seed4")
    thousands = {f"s/{n}": cells["xs/base"] for n in range(5000)}
    with pytest.raises(ConfigError) as error:
        select(thousands, "xl/*")
    assert len(str(error.value)) < 500 and str(error.value).endswith("s/39 and 4960 more")


@pytest.mark.parametrize("text", ["", "- a\n", "study: [\n"])
def test_a_file_that_is_no_study_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="study.yaml"):
        load_study(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{problems: {source: file}}", "problems.file: missing"),
        ("{benchmarks: {clock: {source: clock, hours: 1}}}", "benchmarks.clock.hours"),
        ("{problems: {source: clock, seed: -1}}", "problems.seed"),
        ("{training: {learning_rate: .inf}}", "training.learning_rate"),
        ("{study: x, study: y}", "key 'study' stands twice"),
        ("{scales: {s: {gpus: -1}}}", "scales.s.gpus"),
        ("{scales: {s: {sharding: half}}}", "scales.s.sharding"),
        ("{prompt_selection: {rollouts: 1}}", "prompt_selection.rollouts"),
    ],
)
def test_a_wrong_value_is_named_by_its_own_key(tmp_path: Path, change: str, message: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(change)
    with pytest.raises(ConfigError) as error:
        load_study(path)
    assert message in str(error.value)
    assert "study.yaml" in str(error.value)


def test_what_a_cell_does_not_use_does_not_retrain_it() -> None:
    study = load_study(REPOSITORY / "config" / "studies" / "nano.yaml")
    cells = expand(study)
    methods = {
        name: method if name == "grpo" else with_setting(method, "replay.warmup", 9)
        for name, method in study.methods.items()
    }
    saving = study.checkpoints.model_copy(update={"every": 1})
    other = study.model_copy(update={"methods": methods, "checkpoints": saving})
    cells_of_other = expand(other)
    same = [n for n in cells if resolve(study, cells[n]) == resolve(other, cells_of_other[n])]
    assert {cells[name].method for name in same} == {"base", "grpo"}


def test_sharding_divides_among_several_gpus_and_is_part_of_the_settings_only_where_it_is() -> None:
    study = load_study(REPOSITORY / "config" / "studies" / "paper.yaml")
    cells = expand(study)
    assert training_settings(study, cells["4B/grpo-seed42"])["sharding"] == "full"
    assert "sharding" not in training_settings(study, cells["1.7B/grpo-seed42"])
    with pytest.raises(ValueError, match=r"sharding full divides among GPUs: .* \(1\)"):
        Scale(**{**study.scales["4B"].model_dump(), "gpus": 1})


def test_what_is_only_compared_or_only_says_where_retrains_nothing() -> None:
    study = load_study(REPOSITORY / "config" / "studies" / "nano.yaml")
    training = study.training.model_copy(update={"expected_prompts": 9})
    other = study.model_copy(update={"training": training, "hub_cache": "elsewhere"})
    for cell in expand(study).values():
        assert resolve(study, cell) == resolve(other, cell)


def test_titles_and_plans_remake_nothing() -> None:
    smollm2 = load_study(REPOSITORY / "config" / "studies" / "smollm2.yaml")
    scale = smollm2.scales["135M"]
    larger = scale.model_copy(update={"model": scale.model.model_copy(update={"parameters": 9})})
    assert base_model(scale) == base_model(larger)
    number = {"parameters": model_parameters(scale)}
    assert TypeAdapter(Model).validate_python(base_model(scale) | number) == scale.model
    benchmark = smollm2.benchmarks["math500"]
    other = benchmark.model_copy(update={"title": "Other", "k": 9})
    assert benchmark_problems(smollm2, benchmark) == benchmark_problems(smollm2, other)
    read = TypeAdapter(BenchmarkProblems).validate_python(benchmark_problems(smollm2, benchmark))
    assert read.file == benchmark.file


DEFAULTS = {"study": "nano", "results": "results", "tracking_uri": "", "only": ""}


def test_a_setting_that_nothing_reads_is_refused() -> None:
    read_settings(DEFAULTS, [])
    with pytest.raises(ConfigError, match=r"resluts: unknown key \(did you mean 'results'\?\)"):
        read_settings({**DEFAULTS, "resluts": "elsewhere"}, ["resluts=elsewhere"])


@pytest.mark.parametrize("text", ["20260803", "08", "010", "1e3", "1_000", "True", "[a]", "nan"])
def test_a_setting_is_the_text_that_was_typed(text: str) -> None:
    """By Snakemake's own reading of the command line, which makes numbers and lists of texts."""
    typed = [f"{key}={text}" for key in ("study", "results", "only")]
    read = read_settings(DEFAULTS | parse_config(typed), typed)
    assert [read[key] for key in ("study", "results", "only")] == [text] * 3


def test_an_empty_choice_is_every_cell_and_an_empty_folder_is_refused() -> None:
    for typed in (["only="], ["only=''"]):
        assert read_settings(DEFAULTS | parse_config(typed), typed)["only"] == ""
    assert read_settings({**DEFAULTS, "only": None}, [])["only"] == ""
    for key in ("study", "results"):
        with pytest.raises(ConfigError, match=f"--config {key}: it is empty"):
            read_settings(DEFAULTS | parse_config([f"{key}="]), [f"{key}="])
    with pytest.raises(ConfigError, match="results: 'a{b}' has braces"):
        read_settings(DEFAULTS, ["results=a{b}"])


def test_a_number_in_the_file_of_settings_is_to_be_quoted() -> None:
    """YAML has read it before: 010 would be 8."""
    with pytest.raises(ConfigError, match=r"config.yaml: results: 20260803 is no text; put it in"):
        read_settings({**DEFAULTS, "results": 20260803}, [])


@pytest.mark.parametrize("switch", ["copy_models", "retrain"])
def test_switches_are_true_or_false_in_any_spelling(switch: str) -> None:
    assert read_settings(DEFAULTS, [])[switch] is False
    for text, value in (("true", True), ("True", True), ("false", False), ("FALSE", False)):
        typed = [f"{switch}={text}"]
        assert read_settings(DEFAULTS | parse_config(typed), typed)[switch] is value
    assert read_settings({**DEFAULTS, switch: True}, [])[switch] is True
    for text in ("yes", "1", ""):
        with pytest.raises(ConfigError, match=f"{switch}: '{text}' is neither true nor false"):
            read_settings(DEFAULTS, [f"{switch}={text}"])


def test_a_study_is_a_name_or_a_path() -> None:
    folder = Path("config/studies")
    assert find_study("nano", folder) == folder / "nano.yaml"
    for path in ("own/mine.yaml", "mine.yml", "/some/where/mine"):
        assert find_study(path, folder) == Path(path)


def test_the_text_behind_config_names_study_and_results() -> None:
    config = {"study": "nano", "results": "results", "tracking_uri": "http://name:word@host:1"}
    assert config_text(config | {"only": "s/*"}) == "study=nano"
    moved = config | {"study": "own/mine.yaml", "results": "/my results"}
    assert config_text(moved) == "study=own/mine.yaml 'results=/my results'"


def test_config_and_grid_import_nothing_heavy() -> None:
    heavy = ("torch", "transformers", "trl", "vllm", "mlflow", "pandas", "sympy", "matplotlib")
    code = (
        "import sys; from grpo_replay.planning import gpu_memory, messages, preflight;"
        "from grpo_replay.study import cells, config;"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_store_is_named_by_one_absolute_uri(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    config = {"tracking_uri": "", "results": "/somewhere"}
    assert tracking_uri(config) == "sqlite:////somewhere/mlflow.db"
    assert tracking_uri(config | {"tracking_uri": "http://a:1"}) == "http://a:1"
    with pytest.raises(ConfigError, match="tracking_uri: 'sqlite:///own.db' is no absolute URI"):
        tracking_uri(config | {"tracking_uri": "sqlite:///own.db"})
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql+psycopg2://u@127.0.0.1/db")
    assert tracking_uri(config | {"tracking_uri": "http://a:1"}).startswith("postgresql")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "mlruns")
    with pytest.raises(ConfigError, match="MLFLOW_TRACKING_URI: 'mlruns'"):
        tracking_uri(config)


def test_no_message_shows_a_password(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "ftp://me:pass@word@host/db")
    study = load_study(REPOSITORY / "config" / "studies" / "nano.yaml")
    with pytest.raises(ConfigError) as refused:
        tracking_uri({})
    text = closing(study, {}, tmp_path, "postgresql://me:pass@word@host/db")
    for message in (str(refused.value), text):
        assert "word" not in message and "//host/db" in message
