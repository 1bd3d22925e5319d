"""Snakemake's own report of the finished tiny study, made without a network."""

import json
import re
from pathlib import Path
from zipfile import ZipFile

import pytest
from repository_copy import Workflow

# A closed port: whatever looked for something on the network would fail.
OFFLINE = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")


@pytest.fixture(scope="module")
def report(finished: Workflow, tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """The report, as `snakemake --report report.zip` makes it."""
    target = tmp_path_factory.mktemp("report") / "report.zip"
    done = finished.run("--report", str(target), **OFFLINE)
    assert done.returncode == 0, done.stdout + done.stderr
    return ZipFile(target)


def page_of(report: ZipFile) -> str:
    return report.read("report/report.html").decode()


def variable(report: ZipFile, name: str) -> dict:
    """A JSON object that the page carries."""
    page = page_of(report)
    start = re.search(rf'<script id="{name}">\s*var {name} = ', page)
    value, _ = json.JSONDecoder().raw_decode(page, start.end())
    return value


@pytest.mark.parametrize("kind", ["tables", "figures"])
def test_every_table_and_figure_is_in_the_report(
    finished: Workflow, report: ZipFile, kind: str
) -> None:
    made = {path.stem for path in (finished.results / kind).iterdir()}
    paths = map(Path, variable(report, "results"))
    assert {path.stem for path in paths if path.parent.name == kind} == made
    assert made


def test_every_entry_has_its_file_and_a_caption(report: ZipFile) -> None:
    for path, entry in variable(report, "results").items():
        assert f"report/{entry['data_uri']}" in report.namelist(), path
        assert len(re.sub(r"<[^>]+>", "", entry["caption"])) > 50, path


def test_labels_tell_the_entries_of_a_category_apart(report: ZipFile) -> None:
    results, categories = variable(report, "results"), variable(report, "categories")
    assert "Other" not in categories  # Snakemake's name for what has no category
    filed = [path for groups in categories.values() for paths in groups.values() for path in paths]
    assert sorted(filed) == sorted(results)
    for groups in categories.values():
        for paths in groups.values():
            labels = [json.dumps(results[path]["labels"]) for path in paths]
            assert "null" not in labels and len(set(labels)) == len(labels)


def test_the_page_loads_nothing_from_the_network(report: ZipFile) -> None:
    page = page_of(report)
    assert not re.search(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?https?:", page)
    # The libraries it draws with are inside.
    assert "React" in page and "vega" in page and len(page) > 1_000_000
