"""The committed notebook, executed on the tiny study by a kernel of this interpreter."""

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from ipykernel.kernelspec import write_kernel_spec
from nbclient import NotebookClient
from nbformat import NotebookNode
from repository_copy import REPOSITORY, Workflow

NOTEBOOK = REPOSITORY / "notebooks" / "explore_results.ipynb"
FOLDER = 'RESULTS = Path("../results/nano")'


def read_notebook() -> NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


def test_the_notebook_is_committed_without_outputs() -> None:
    code = [cell for cell in read_notebook().cells if cell.cell_type == "code"]
    assert code
    assert not any(cell.outputs or cell.execution_count for cell in code)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a kernel that is this interpreter, whatever the user has installed."""
    folder = tmp_path_factory.mktemp("jupyter")
    write_kernel_spec(folder / "kernels" / "this")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder))
        for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(variable, str(folder / variable))
        yield "this"


def execute(results: Path, kernel: str) -> dict[str, dict]:
    """Run every cell on a study; return what each code cell shows, by cell id."""
    notebook = read_notebook()
    [setting] = [cell for cell in notebook.cells if FOLDER in cell.source]
    setting.source = setting.source.replace("../results/nano", str(results))
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    NotebookClient(notebook, timeout=300, kernel_name=kernel, resources=resources).execute()
    return {
        cell.id: output.data
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "execute_result"
    }


@pytest.fixture(scope="module")
def shown(finished: Workflow, kernel: str) -> dict[str, dict]:
    """What each code cell shows of the tiny study, by cell id."""
    return execute(finished.results, kernel)


def test_the_notebook_shows_a_finished_study(finished: Workflow, shown: dict[str, dict]) -> None:
    scores = pd.read_parquet(finished.results / "scores.parquet")
    assert all(cell in shown["cells"]["text/html"] for cell in scores["cell"])
    table = (finished.results / "tables" / "main.md").read_text()
    assert shown["table"]["text/markdown"] == table
    assert "image/png" in shown["curves"]
    samples = rows(shown["samples"]["text/html"])
    assert len(samples) == 6 * 4  # cells x k
    assert {row[0] for row in samples} == set(scores["cell"])
    assert {row[6] for row in samples} <= {"no", "yes"}  # grade_training
    assert "around a 5-hour clock" in shown["samples"]["text/html"]
    assert "decided_by" in shown["disagreements"]["text/html"]


def test_the_notebook_shows_when_a_rollout_was_replayed(
    finished: Workflow, shown: dict[str, dict]
) -> None:
    page = shown["rollouts"]["text/html"]
    [problem] = re.findall(r"<b>(clock-train-\d+)</b>", page)
    train = finished.results / "cells" / "s/ours-replay.tau_max1-seed42" / "train"
    replay = pd.read_parquet(train / "replay.parquet").query("problem_id == @problem")
    columns = ["step", "rollout_id", "age", "replayed"]
    own = replay.sort_values(["step", "rollout_id"])[columns].astype(str).values.tolist()
    assert [row[:4] for row in rows(shown["uses"]["text/html"])] == own
    assert any(row[3] == "True" for row in own)
    replayed_at = {row[1]: row[7] for row in rows(page)}
    assert all(row[0] in replayed_at[row[1]].split(", ") for row in own if row[3] == "True")


def rows(page: str) -> list[list[str]]:
    """The texts of the data fields of an HTML table, row by row."""
    fields = (re.findall(r"<td[^>]*>(.*?)</td>", row, re.S) for row in page.split("<tr")[1:])
    return [row for row in fields if row]
