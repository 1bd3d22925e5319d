"""A benchmark with a task of its own beside one of mathematics: sampled, graded, scored, tabled."""

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

from grpo_replay.evaluation.grade import grade_answers
from grpo_replay.evaluation.sample import sample_answers
from grpo_replay.evaluation.sample_files import write_samples
from grpo_replay.evaluation.score import score_cell
from grpo_replay.evaluation.settings import SamplingSettings
from grpo_replay.files import digest, file_digest, read_json, write_json
from grpo_replay.models.folder import open_folder
from grpo_replay.reporting.browse.tables import disagreements
from grpo_replay.reporting.numbers.chance import chance_percent
from grpo_replay.reporting.tables import verifiers
from grpo_replay.reporting.tables.catalogue import write_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.results.layout import StudyFiles
from grpo_replay.results.scores import collect_scores, read_scores
from grpo_replay.study.cells import benchmark_tasks, evaluation_settings, expand, resolve
from grpo_replay.study.config import Study
from grpo_replay.study.yaml_values import read_yaml
from grpo_replay.tasks.benchmarks import make_benchmark
from grpo_replay.tasks.choice import Choice
from grpo_replay.tasks.config import FileBenchmarkProblems
from grpo_replay.tasks.math.task import Math
from grpo_replay.tasks.problems import read_problems, write_problems

TINY = Path(__file__).parents[1] / "fixtures" / "studies" / "tiny.yaml"
QUESTIONS = [
    {"id": f"q{i}", "problem": f"Which is {i}?", "answer": letter, "options": ["7", "8", "9"]}
    for i, letter in ((7, "A"), (8, "B"), (9, "C"))
]
SUMS = [{"id": "s", "problem": "What is 3 times 1/6?", "answer": "\\frac{1}{2}"}]
K = 2
# What is written over the answers of the random model, which boxes none, problem by problem.
WRITTEN = {
    "quiz": ["\\boxed{(a)}", "no", "\\boxed{A}", "\\boxed{B. 8}", "\\boxed{C}", "\\boxed{9}"],
    "sums": ["\\boxed{0.5}", "\\boxed{3}"],
}


def the_study() -> Study:
    content = read_yaml(TINY)
    made = {"source": "file", "k": K}
    content["benchmarks"] = {
        "quiz": {
            **made, "title": "Quiz", "file": "quiz.jsonl", "n_problems": 3,
            "task": {"kind": "choice", "options": 3},
        },
        "sums": {**made, "title": "Sums", "file": "sums.jsonl", "n_problems": 1},
    }  # fmt: skip
    content["scales"]["s"]["evaluation_max_tokens"] = 6
    return Study.model_validate(content)


class Evaluated:
    """The base cell of the study, evaluated by the functions that the rules call."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.study, self.results, self.model = the_study(), folder / "results", model
        self.cell = expand(self.study)["s/base"]
        self.files = StudyFiles(self.results).cell(self.cell.cell)
        self.problems = {}
        for name, benchmark in self.study.benchmarks.items():
            settings = benchmark.model_dump(exclude={"title", "k"}) | {"task": benchmark.task}
            self.problems[name] = Path(StudyFiles(self.results).benchmark(name))
            make_benchmark(FileBenchmarkProblems(**settings), self.problems[name])

    def sample(self) -> None:
        settings = SamplingSettings(**evaluation_settings(self.study, self.cell))
        folder = Path(self.files.manifest).parent
        sample_answers(self.model, self.problems, settings, folder, self.results / "work")

    def write_over(self) -> None:
        manifest = read_json(Path(self.files.manifest))
        for name, texts in WRITTEN.items():
            path = Path(self.files.samples(name))
            rows = pd.read_parquet(path).sort_values(["problem_id", "sample_id"])
            ids = [problem["id"] for problem in read_problems(self.problems[name])]
            write_samples(path, name, ids, K, rows.assign(text=texts).to_dict("records"))
            manifest["files"][name]["sha256"] = file_digest(path)
        write_json(Path(self.files.manifest), manifest)

    def grade_and_score(self) -> dict[str, dict]:
        k = dict.fromkeys(self.problems, K)
        samples, grades = (Path(f("quiz")).parent for f in (self.files.samples, self.files.grades))
        tasks = benchmark_tasks(self.study)["tasks"]
        grade_answers(samples, self.model, self.problems, k, grades, 5.0, 1, tasks)
        write_json(Path(self.files.settings), resolve(self.study, self.cell))
        paths = {name: Path(self.files.grades(name)) for name in self.problems}
        score_cell(Path(self.files.settings), paths, Path(self.files.scores))
        return json.loads(Path(self.files.scores).read_text())["benchmarks"]


@pytest.fixture
def evaluated(tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluated:
    write_problems(tmp_path / "quiz.jsonl", QUESTIONS)
    write_problems(tmp_path / "sums.jsonl", SUMS)
    monkeypatch.setenv("GRPO_REPLAY_DATA", str(tmp_path))
    return Evaluated(tmp_path, tiny_model)


def test_a_choice_is_asked_graded_and_scored_as_such(evaluated: Evaluated) -> None:
    evaluated.sample()
    folder, prompts = open_folder(evaluated.model), {}
    for name, task in (("quiz", Choice(options=3)), ("sums", Math())):
        asked = [task.messages(problem) for problem in read_problems(evaluated.problems[name])]
        prompts[name] = digest(folder.render(asked))
    manifest = read_json(Path(evaluated.files.manifest))
    assert manifest["prompts_sha256"] == prompts
    assert manifest["settings"]["tasks"] == {"quiz": {"kind": "choice", "options": 3}}
    scores = evaluated.grade_and_score()
    assert scores["quiz"]["avg_at_k"] == 0.0  # a random model boxes nothing
    evaluated.write_over()
    scores = evaluated.grade_and_score()
    quiz = scores["quiz"]
    assert quiz["avg_at_k"] == pytest.approx(50.0)  # (a), B. 8 and C
    assert quiz["problem_accuracy"] == [50.0, 50.0, 50.0]
    assert quiz["avg_at_k_paper"] is None  # its task has no such verifier
    assert scores["sums"]["avg_at_k"] == scores["sums"]["avg_at_k_paper"] == 50.0
    chance = chance_percent(evaluated.study, evaluated.study.benchmarks["quiz"])
    assert chance["avg"] == pytest.approx(100 / 3)


def test_verifiers_are_columns_by_name(evaluated: Evaluated) -> None:
    evaluated.sample()
    evaluated.write_over()
    evaluated.grade_and_score()
    quiz, sums = (pd.read_parquet(evaluated.files.grades(name)) for name in ("quiz", "sums"))
    assert [c for c in quiz if c.startswith(("correct", "grade", "timed"))] == [
        "correct", "timed_out",
    ]  # fmt: skip
    assert quiz["method"].tolist() == ["letter", "no box", *["letter"] * 4]
    assert sums[["correct", "grade_paper", "grade_training"]].values.tolist() == [
        [True, True, False], [False, False, False],
    ]  # fmt: skip
    results = evaluated.results
    collect_scores(evaluated.study, results, results / "scores.parquet")
    scores = read_scores(results)
    write_table(
        verifiers.build(Source(evaluated.study, scores, results, "")), results / "verifiers"
    )
    with (results / "verifiers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    words = ("letter", "training", "evaluation", "paper")
    assert [(r["benchmark"], *(r[word] for word in words), r["answers"]) for r in rows] == [
        ("quiz", "right", "", "", "", "3"),
        ("quiz", "wrong", "", "", "", "3"),
        ("sums", "", "wrong", "right", "right", "1"),
        ("sums", "", "wrong", "wrong", "wrong", "1"),
    ]
    assert disagreements(results)[["benchmark", "sample_id"]].values.tolist() == [["sums", 0]]
