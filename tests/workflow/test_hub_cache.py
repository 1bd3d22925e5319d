"""The study names where the Hub's client keeps what it fetches."""

import json
from pathlib import Path

import yaml
from hub_server import COMMIT, serve
from repository_copy import copy_repository


def test_data_sets_go_into_the_cache_that_the_study_names(tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "datasets" / "org" / "set"
    repository.mkdir(parents=True)
    row = {"id": "1", "problem": "What is 1+1?", "answer": "2"}
    (repository / "own.jsonl").write_text(json.dumps(row) + "\n")
    workflow = copy_repository(tmp_path / "copy")
    study = yaml.safe_load(workflow.study.read_text())
    hub = {"repo": "org/set", "revision": COMMIT, "file": "own.jsonl", "id_column": "id"}
    own = {"source": "file", "title": "Own", "file": "own.jsonl", "n_problems": 1, "k": 4}
    study["benchmarks"]["own"] = own | {"hub": hub}
    study["hub_cache"] = "fetched"
    workflow.study.write_text(yaml.safe_dump(study))
    target = "results/tiny/data/benchmarks/own.jsonl"
    elsewhere = tmp_path / "elsewhere"
    with serve(tmp_path / "hub") as endpoint:
        variables = {"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"}
        done = workflow.run(target, HF_HUB_CACHE=str(elsewhere), **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((workflow.folder / target).read_text()) == row
    assert list((workflow.folder / "fetched" / "datasets--org--set").rglob("own.jsonl"))
    assert not elsewhere.exists()
