"""Problems and models from a hub: the real client against a server on 127.0.0.1."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_server import COMMIT, serve

from grpo_replay.files import file_digest
from grpo_replay.models.local import count_parameters
from grpo_replay.tasks.config import HubFile
from grpo_replay.tasks.problems import read_problems

ROWS = [
    {"unique_id": "a/1", "problem": "What is 1+1?", "answer": "2", "level": 1},
    {"unique_id": "a/2", "problem": "What is 2+2?", "answer": "4", "level": 2},
]
MAKE = """
import sys
from pathlib import Path
from pydantic import TypeAdapter
from grpo_replay.errors import GrpoReplayError
kind, settings, output = sys.argv[1], sys.argv[2], Path(sys.argv[3])
if kind == "benchmark":
    from grpo_replay.tasks.benchmarks import make_benchmark as make
    from grpo_replay.tasks.config import Benchmark as Form
elif kind == "problems":
    from grpo_replay.tasks.problems import make_problems as make
    from grpo_replay.tasks.config import TrainingProblems as Form
else:
    from grpo_replay.models.config import Model as Form
    from grpo_replay.models.make import copy_pretrained as make
try:
    make(TypeAdapter(Form).validate_json(settings), output)
except GrpoReplayError as error:
    sys.exit(f"error: {error}")
"""

Make = Callable[..., subprocess.CompletedProcess]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "hub" / "datasets" / "org" / "set").mkdir(parents=True)
    return tmp_path / "hub"


@pytest.fixture
def make(root: Path, tmp_path: Path) -> Iterator[Make]:
    """Make something in a process of its own, since the client reads its endpoint on import."""
    with serve(root) as endpoint:

        def run(kind: str, settings: dict, **variables: str) -> subprocess.CompletedProcess:
            environment = {k: v for k, v in os.environ.items() if not k.startswith("GRPO_REPLAY_")}
            environment |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "cache")}
            environment |= {"HF_HUB_OFFLINE": "0", **variables}
            command = [sys.executable, "-c", MAKE, kind, json.dumps(settings), tmp_path / "out"]
            return subprocess.run(command, env=environment, capture_output=True, text=True)

        yield run


def settings(file: str = "test.jsonl", id_column: str | None = "unique_id", **changes) -> dict:
    hub = {"repo": "org/set", "revision": COMMIT, "file": file, "id_column": id_column}
    values = {"source": "file", "title": "Own", "file": "own.jsonl", "n_problems": 2, "k": 4}
    return {**values, "hub": hub, **changes}


def put(root: Path, rows: list[dict], name: str = "test.jsonl") -> None:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (root / "datasets" / "org" / "set" / name).write_text(text)


def test_a_benchmark_comes_from_the_hub_and_is_recorded(
    make: Make, root: Path, tmp_path: Path
) -> None:
    put(root, ROWS)
    done = make("benchmark", settings())
    assert done.returncode == 0, done.stderr
    assert [(p["id"], p["answer"]) for p in read_problems(tmp_path / "out")] == [
        ("a/1", "2"),
        ("a/2", "4"),
    ]
    record = json.loads((tmp_path / "out.source.json").read_text())
    assert record["rows"] == 2 and record["columns"]["level"] == ["int"]
    again = make("benchmark", settings(), HF_HUB_OFFLINE="1")  # from the cache
    assert again.returncode == 0, again.stderr


def test_changed_content_under_the_same_commit_stops_the_run(
    make: Make, root: Path, tmp_path: Path
) -> None:
    put(root, ROWS)
    assert make("benchmark", settings()).returncode == 0
    shutil.rmtree(tmp_path / "cache")
    put(root, [ROWS[0], {**ROWS[1], "answer": "5"}])
    recorded = json.loads((tmp_path / "out.source.json").read_text())["sha256"]
    done = make("benchmark", settings())
    assert done.returncode == 1 and "has changed" in done.stderr
    now = file_digest(root / "datasets" / "org" / "set" / "test.jsonl")
    assert f"sha256: {recorded} in the record, {now} now" in done.stderr
    assert json.loads((tmp_path / "out.source.json").read_text())["sha256"] == recorded


def test_another_commit_of_a_study_is_a_first_time(make: Make, root: Path, tmp_path: Path) -> None:
    put(root, ROWS)
    record = tmp_path / "out.source.json"
    record.write_text(json.dumps({"source": f"org/set@{'f' * 8}/test.jsonl", "rows": 1}))
    assert make("benchmark", settings()).returncode == 0
    assert json.loads(record.read_text())["source"] == f"org/set@{COMMIT[:8]}/test.jsonl"


def test_parquet_with_integer_answers_and_no_ids(make: Make, root: Path, tmp_path: Path) -> None:
    rows = [{"problem": row["problem"], "answer": int(row["answer"])} for row in ROWS]
    pq.write_table(pa.Table.from_pylist(rows), root / "datasets" / "org" / "set" / "all.parquet")
    done = make("benchmark", settings("all.parquet", None))
    assert done.returncode == 0, done.stderr
    assert [(p["id"], p["answer"]) for p in read_problems(tmp_path / "out")] == [
        ("0", "2"),
        ("1", "4"),
    ]


def test_rows_without_an_answer_are_refused_or_counted(
    make: Make, root: Path, tmp_path: Path
) -> None:
    put(root, [*ROWS, {"unique_id": "a/3", "problem": "?", "answer": None}])
    training = {k: v for k, v in settings().items() if k in ("source", "file", "hub")}
    done = make("problems", training)
    assert done.returncode == 1 and "row 2: field 'answer' is empty" in done.stderr
    done = make("problems", {**training, "max_dropped": 1})
    assert done.returncode == 0, done.stderr
    assert "left out 1 problems without a readable answer: a/3" in done.stderr
    assert len(read_problems(tmp_path / "out")) == 2


def test_local_files_may_lack_answers_where_that_is_allowed(make: Make, tmp_path: Path) -> None:
    rows = [
        {"id": "1", "problem": "1+1?", "answer": "2"},
        {"id": "2", "problem": "?", "answer": ""},
    ]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    training = {"source": "file", "file": "own.jsonl"}
    done = make("problems", training, GRPO_REPLAY_DATA=str(tmp_path))
    assert done.returncode == 1 and "field 'answer' is empty" in done.stderr
    done = make("problems", {**training, "max_dropped": 1}, GRPO_REPLAY_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert [p["id"] for p in read_problems(tmp_path / "out")] == ["1"]


def test_a_torn_table_is_named(make: Make, root: Path) -> None:
    file = root / "datasets" / "org" / "set" / "all.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS * 50), file)
    whole = file.read_bytes()
    file.write_bytes(whole[:-60] + b"q" * 50 + whole[-10:])
    done = make("benchmark", settings("all.parquet", None))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "all.parquet: cannot be read" in done.stderr


def test_a_row_without_its_columns_is_named(make: Make, root: Path) -> None:
    put(root, [ROWS[0], {"unique_id": "a/2", "problem": "?"}])
    done = make("benchmark", settings())
    assert done.returncode == 1 and "row 1: no column 'answer'" in done.stderr


@pytest.mark.parametrize(("column", "value"), [("answer", 2.5), ("answer", [2]), ("problem", True)])
def test_a_cell_that_is_no_text_is_named(
    make: Make, root: Path, column: str, value: object
) -> None:
    put(root, [ROWS[0], {**ROWS[1], column: value}])
    training = {k: v for k, v in settings().items() if k in ("source", "file", "hub")}
    done = make("problems", {**training, "max_dropped": 1})  # it is no missing answer
    assert done.returncode == 1 and f"row 1: column '{column}' is {value!r}" in done.stderr


def test_two_rows_of_one_id_are_refused_before_anything_is_made_of_them(
    make: Make, root: Path, tmp_path: Path
) -> None:
    put(root, [ROWS[0], {**ROWS[1], "unique_id": "a/1"}])
    for kind in ("benchmark", "problems"):
        form = settings() if kind == "benchmark" else {"source": "file", "file": "own.jsonl"}
        done = make(kind, {**form, "hub": settings()["hub"]})
        assert done.returncode == 1 and "row 1: id 'a/1' is that of row 0 too" in done.stderr
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [("repo", "org/set/more"), ("repo", "my set"), ("file", "rows.csv"), ("file", "../rows.json")],
)
def test_what_the_hub_cannot_have_is_refused_with_the_study(key: str, value: str) -> None:
    hub = settings()["hub"]
    HubFile(**hub)
    with pytest.raises(ValueError, match=key):
        HubFile(**hub | {key: value})


def test_what_cannot_be_had_says_which_file_to_put_where(make: Make, root: Path) -> None:
    done = make("benchmark", settings())  # no such file
    assert done.returncode == 1
    assert "put its problems as own.jsonl" in done.stderr and "GRPO_REPLAY_DATA" in done.stderr
    assert "Traceback" not in done.stderr


def model_settings(name: str = "org/tiny", parameters: int = 1) -> dict:
    return {"source": "pretrained", "name": name, "revision": COMMIT, "parameters": parameters}


@pytest.fixture
def named(tiny_model: Path) -> dict:
    """The settings of the model that `repository` holds."""
    return model_settings(parameters=count_parameters(tiny_model))


@pytest.fixture
def repository(root: Path, tiny_model: Path) -> Path:
    """A model's repository on the hub."""
    return Path(shutil.copytree(tiny_model, root / "org" / "tiny"))


def test_a_model_comes_from_the_hub_and_is_recorded(
    make: Make, repository: Path, named: dict, tmp_path: Path
) -> None:
    done = make("model", named)
    assert done.returncode == 0, done.stderr
    made = tmp_path / "out" / "model.safetensors"
    assert made.read_bytes() == (repository / "model.safetensors").read_bytes()
    record = json.loads((tmp_path / "out.source.json").read_text())
    assert record.pop("source") == f"org/tiny@{COMMIT}"
    assert record == {path.name: file_digest(path) for path in (tmp_path / "out").iterdir()}
    assert {"model.safetensors", "tokenizer.json"} <= record.keys()


def test_a_model_of_another_size_is_refused(make: Make, repository: Path, named: dict) -> None:
    done = make("model", {**named, "parameters": 1})
    told = f"hold {named['parameters']} parameters, `parameters` says 1"
    assert done.returncode == 1 and told in done.stderr and "Traceback" not in done.stderr


def test_a_model_that_cannot_be_had_says_which_files_to_put_where(make: Make) -> None:
    done = make("model", model_settings("org/none"), HF_HUB_OFFLINE="1")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "*.safetensors into a folder none" in done.stderr
    assert "name the folder around that in GRPO_REPLAY_MODELS" in done.stderr


def test_a_changed_local_model_stops_the_run(
    make: Make, repository: Path, named: dict, other_model: Path, tmp_path: Path
) -> None:
    """What came from the Hub is what a local folder of that name must hold."""
    assert make("model", named).returncode == 0
    models = tmp_path / "models"
    local = Path(shutil.copytree(repository, models / "tiny"))
    assert make("model", named, GRPO_REPLAY_MODELS=str(models)).returncode == 0
    shutil.copy(other_model / "model.safetensors", local)
    (local / "tokenizer.json").write_text((local / "tokenizer.json").read_text() + " ")
    done = make("model", named, GRPO_REPLAY_MODELS=str(models))
    assert done.returncode == 1
    for file in ("model.safetensors", "tokenizer.json"):
        was, now = file_digest(repository / file), file_digest(local / file)
        assert f"{file}: {was} in the record, {now} now" in done.stderr
        assert file_digest(tmp_path / "out" / file) == was  # what is there stays


def test_no_code_of_a_models_own_is_run(make: Make, repository: Path, tmp_path: Path) -> None:
    (repository / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    config = json.loads((repository / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "code.Own"}}
    (repository / "config.json").write_text(json.dumps(config))
    done = make("model", model_settings())
    assert done.returncode == 1 and "cannot be read" in done.stderr
    assert not (tmp_path / "ran").exists() and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("config.json", "[]"),
        ("config.json", '{"model_type": "qwen3", "hidden_size": "a"}'),
        ("tokenizer.json", "{}"),
        ("tokenizer_config.json", "[]"),
        ("generation_config.json", "{"),
    ],
)
def test_a_file_of_another_shape_is_refused(
    make: Make, repository: Path, named: dict, tmp_path: Path, file: str, text: str
) -> None:
    (repository / file).write_text(text)
    done = make("model", named)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "org/tiny: its configuration or tokenizer cannot be read" in done.stderr
    assert not (tmp_path / "out").exists()


def test_weights_that_are_no_safetensors_are_refused(
    make: Make, repository: Path, tmp_path: Path
) -> None:
    (repository / "model.safetensors").rename(repository / "pytorch_model.bin")
    done = make("model", model_settings())
    assert done.returncode == 1 and "no model.safetensors there" in done.stderr
    assert not list((tmp_path / "cache").rglob("*.bin")) and not (tmp_path / "out").exists()
