"""What a run decides before its jobs are planned, and where everything lies."""

import ast
import re
from pathlib import Path

import pytest

from grpo_replay.errors import ConfigError
from grpo_replay.files import write_json
from grpo_replay.planning.gpu_memory import GpuMemory
from grpo_replay.planning.run import Declared, Run
from grpo_replay.reporting import names
from grpo_replay.reporting.figures.catalogue import FIGURES
from grpo_replay.reporting.paper.catalogue import PAPER_TABLES
from grpo_replay.reporting.tables.catalogue import OWN_TABLES, RENDERERS
from grpo_replay.results.layout import CellFiles, StudyFiles
from grpo_replay.study.cells import training_settings

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "config" / "studies"
OURS = "s/ours-seed42"


def run_of(tmp_path: Path, **changes: object) -> Run:
    config = {"study": "nano", "results": str(tmp_path), "only": "", "tracking_uri": ""}
    return Run.of({**config, **changes}, STUDIES, conda=False)


def test_everything_is_chosen_unless_only_says_otherwise(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert run.chosen == run.cells and len(run.scores()) == len(run.cells) == 18
    assert list(run_of(tmp_path, only="s/ours-*").chosen) == [
        *(OURS, "s/ours-replay.tau_max1-seed42", "s/ours-replay.tau_max30-seed42"),
        "s/ours-replay.tau_max60-seed42",
    ]
    with pytest.raises(ConfigError, match="only='x/\\*' matches no cell"):
        run_of(tmp_path, only="x/*")


def test_a_name_that_the_study_lacks_is_the_users_mistake(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    with pytest.raises(ConfigError, match=r"nano.yaml: no cell 's/our-seed42' \(did you mean"):
        run.position("s/our-seed42")
    for look, name in ((run.scale, "xxl"), (run.benchmark, "clock4")):
        with pytest.raises(ConfigError, match=f"no {look.__name__} '{name}'.*there are: "):
            look(name)
    assert run.position("xs/base") == "1/18"


def test_what_jobs_read_lies_where_others_write_it(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    files = StudyFiles(tmp_path / "nano")
    assert run.policy(OURS) == files.cell(OURS).model
    assert run.policy("s/base") == run.start_model("s") == files.base_model("s")
    assert run.training_problems("s") == files.problems
    selecting = run.study.model_copy(update={"prompt_selection": object(), "warm_start": object()})
    other = Run(run.study_file, selecting, run.cells, files, "", "", "")
    assert other.training_problems("s") == files.selected_problems("s")
    assert other.start_model("s") == files.warm_started_model("s")


def test_cells_of_earlier_ids_are_named_and_the_studys_own_are_not(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    write_json(run.files.cell(OURS).settings, {})
    assert run.unread() == []
    for name in ("s/ours-tau1-seed42", "xl/grpo-seed42"):
        write_json(run.files.cell(name).settings, {})
    (line,) = run.unread()
    assert line.startswith(f"{tmp_path / 'nano' / 'cells'}: 2 cells here are none of study nano")
    assert "(s/ours-tau1-seed42, xl/grpo-seed42)" in line


def test_a_training_is_current_under_its_own_settings_alone(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    files = run.files.cell(OURS)
    assert not run.is_trained(OURS) and run.is_trained("s/base")
    files.model.mkdir(parents=True)
    settings = training_settings(run.study, run.cells[OURS])
    write_json(files.training_settings, settings)
    assert run.is_trained(OURS)
    write_json(files.training_settings, settings | {"micro_batch": 7})
    assert not run.is_trained(OURS)


def test_hardware_is_held_against_the_jobs_that_will_run(tmp_path: Path) -> None:
    run = run_of(tmp_path, study="paper")
    run.check_hardware([], [], Declared(0, 0, local=True))
    with pytest.raises(ConfigError, match="a job needs 8 GPUs and 4 are declared"):
        run.check_hardware(["4B/grpo-seed42"], [], Declared(4, 0, local=True))
    with pytest.raises(ConfigError, match="a job needs 1 GPUs and 0 are declared"):
        run.check_hardware([], ["4B/grpo-seed42"], Declared(0, 0, local=True))
    with pytest.raises(ConfigError, match="8 GB"):
        run.check_hardware(["4B/grpo-seed42"], [], Declared(8, 8, local=False))
    assert Declared(8, 80, local=False).memory() == GpuMemory(
        80e9, "declared by --resources gpu_gb"
    )
    assert Declared(8, 0, local=False).memory() is None


def test_misses_of_the_store_are_counted_in_a_file(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert run.tracking_misses() == "0"
    run.files.tracking_misses.parent.mkdir(parents=True)
    run.files.tracking_misses.write_text("3")
    assert run.tracking_misses() == "3"


# --- names and places ---


def test_snakemake_and_the_package_know_the_same_tables_and_figures() -> None:
    assert tuple(FIGURES) == names.FIGURES
    assert tuple(OWN_TABLES) == names.OWN_TABLES
    assert list(names.NUMBERED) == [build.__name__ for build in PAPER_TABLES]
    assert [f".{ext}" for ext in names.TABLE_FORMATS] == list(RENDERERS)


def test_a_rule_writes_a_cell_with_a_wildcard_in_its_place() -> None:
    files = StudyFiles(Path("results/nano"))
    assert (
        str(files.cell("{cell}").grades("easy")) == "results/nano/cells/{cell}/grades/easy.parquet"
    )
    assert str(files.log("score_cell", "{cell}")) == "results/nano/logs/score_cell/{cell}.log"
    assert CellFiles.of(files.cell(OURS).folder) == files.cell(OURS)


def spelt(path: Path) -> set[str]:
    """Parts of paths below results/ that a file spells in its strings."""
    if path.suffix == ".py":
        nodes = list(ast.walk(ast.parse(path.read_text())))
        joined = [n.right for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div)]
        texts = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        texts += [f"/{n.value}/" for n in joined if isinstance(n, ast.Constant)]
    else:
        texts = re.findall(r'f?"([^"\s]*)"', path.read_text())
    folders = r"/(cells|grades|samples|checkpoints|base_models|warm_start)(/|$)"
    files = r"(cell|scores|manifest)\.json$|(selected|problems)\.jsonl|scores\.parquet|misses\.txt"
    return {t for t in texts if not re.search(r"\s", t) and re.search(f"{folders}|{files}", t)}


def test_each_path_below_results_is_spelt_once() -> None:
    layout = ROOT / "src" / "grpo_replay" / "results" / "layout.py"
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "workflow").rglob("*.smk"), ROOT / "Snakefile"]
    assert spelt(layout)
    found = {str(path.relative_to(ROOT)): spelt(path) for path in files if path != layout}
    assert {name: texts for name, texts in found.items() if texts} == {}
