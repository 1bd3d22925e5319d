"""What each task asks, rewards and calls right; how a study names one, and what follows from it."""

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from grpo_replay.errors import ConfigError, DataError
from grpo_replay.study.cells import (
    benchmark_problems,
    evaluation_settings,
    expand,
    resolve,
    training_settings,
)
from grpo_replay.study.config import Study
from grpo_replay.study.file import load_study
from grpo_replay.study.yaml_values import read_yaml
from grpo_replay.tasks.any_task import DEFAULT_TASK, task_of
from grpo_replay.tasks.benchmarks import make_benchmark
from grpo_replay.tasks.choice import Choice, letter_of
from grpo_replay.tasks.clock_task import Clock
from grpo_replay.tasks.config import FileBenchmarkProblems
from grpo_replay.tasks.math.task import Math
from grpo_replay.tasks.problems import read_problems, write_problems

TINY = Path(__file__).parents[1] / "fixtures" / "studies" / "tiny.yaml"
QUESTION: dict[str, Any] = {
    "id": "q", "problem": "Which is a noble gas?", "answer": "C",
    "options": ["iron", "zinc", "neon", "gold"],
}  # fmt: skip


def said(*texts: str) -> list[list[dict[str, str]]]:
    return [[{"role": "assistant", "content": text}] for text in texts]


def tiny(**changes: Any) -> Study:
    return Study.model_validate({**read_yaml(TINY), **changes})


# --- mathematics, the clock, a choice -------------------------------------------------------------


def test_the_prompt_of_mathematics_is_the_papers() -> None:
    assert Math().messages({"problem": "What is 1 + 1?"}) == [
        {"role": "system", "content": "You are a helpful assistant."},
        {
            "role": "user",
            "content": "Problem: What is 1 + 1?\n\n"
            "Please reason step by step, and put your final answer within \\boxed{}.",
        },
    ]


def test_the_verifiers_of_mathematics_differ_where_they_should() -> None:
    pairs = [("\\frac{1}{2}", "\\boxed{0.5}"), ("52_8", "\\boxed{52_9}")]
    verdicts = {
        name: [g.correct for g in verify(pairs, workers=1, timeout=5.0)]
        for name, verify in Math().verifiers.items()
    }
    expected = {"evaluation": [True, False], "paper": [True, True], "training": [False, False]}
    assert verdicts == expected
    assert list(verdicts) == list(expected)  # the first one's word is `correct`
    assert Math().correct(pairs) == [True, False]
    completions = said(*(text for _, text in pairs))
    assert Math().rewards["answer"](completions, ["\\frac{1}{2}", "52_8"]) == [-1.0, -1.0]


def test_the_clock_reads_whole_hours_alone() -> None:
    texts = ["\\boxed{7}", "\\boxed{ 07 }", "\\boxed{7.0}", "\\boxed{8}", "7", "\\boxed{٧}"]
    assert Clock().correct([("7", text) for text in texts]) == [True, True, *[False] * 4]
    assert Clock().messages(QUESTION) == Math().messages(QUESTION)
    Clock().check_gold({"answer": "11"})
    for gold in ("7.5", "", "x", 7):
        with pytest.raises(DataError, match="is no hour: write a whole number"):
            Clock().check_gold({"answer": gold})


def test_a_choice_lists_its_options_under_letters() -> None:
    asked = Choice().messages(QUESTION)[1]["content"]
    assert asked.startswith(
        "Problem: Which is a noble gas?\n\nA. iron\nB. zinc\nC. neon\nD. gold\n\n"
    )
    assert asked.endswith("the letter of the right option within \\boxed{}.")
    assert Choice().chance == 25.0 and Choice(options=10).chance == 10.0


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("C", "C"), ("c", "C"), ("(C)", "C"), ("C.", "C"), ("\\text{C}", "C"), (" C: neon ", "C"),
        ("(C) neon", "C"), ("\\textbf{(C)}", "C"), ("neon", None), ("C neon", None), ("", None),
        ("(A) or (C)", None), ("AC", None), ("A, C", None),
    ],
)  # fmt: skip
def test_a_letter_is_read_or_nothing(answer: str, letter: str | None) -> None:
    assert letter_of(answer) == letter
    expected = letter == "C"
    assert Choice().correct([("C", f"So it is \\boxed{{{answer}}}.")]) == [expected]
    reward = Choice().rewards["answer"](completions=said(f"\\boxed{{{answer}}}"), answer=["C"])
    assert reward == [1.0 if expected else -1.0]


def test_the_last_box_counts_and_a_text_without_one_is_wrong() -> None:
    pairs = [("C", "\\boxed{A}, no: \\boxed{C}"), ("C", "C"), ("A", "\\boxed{A}, no: \\boxed{C}")]
    assert Choice().correct(pairs) == [True, False, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "E"}, "'E' is the letter of no option: write one of A, B, C, D"),
        ({"answer": "c"}, "'c' is the letter of no option"),
        ({"answer": ""}, "'' is the letter of no option"),
        ({"options": None}, "found no list, expected 4 texts"),
        ({"options": ["iron", "neon"]}, "found 2 texts, expected 4 texts: give every problem"),
        ({"options": ["a", "b", " ", "d"]}, "' ' is no text: write every option as a string"),
        ({"options": ["a", "b", 3, "d"]}, "3 is no text"),
    ],
)
def test_a_question_that_nobody_could_answer_is_refused(change: dict, message: str) -> None:
    Choice().check_gold(QUESTION)
    with pytest.raises(DataError, match=message):
        Choice().check_gold({**QUESTION, **change})


def test_a_benchmark_is_checked_by_its_own_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_problems(tmp_path / "set.jsonl", [QUESTION])
    monkeypatch.setenv("GRPO_REPLAY_DATA", str(tmp_path))
    source = {"source": "file", "file": "set.jsonl", "n_problems": 1}
    make_benchmark(FileBenchmarkProblems(**source, task=Choice()), tmp_path / "made.jsonl")
    assert read_problems(tmp_path / "made.jsonl") == [QUESTION]
    with pytest.raises(DataError, match="problem 'q': options: found 4 texts, expected 5"):
        make_benchmark(FileBenchmarkProblems(**source, task=Choice(options=5)), tmp_path / "made")


# --- how a study names a task ---------------------------------------------------------------------


def test_a_study_without_a_task_keeps_what_it_has_made() -> None:
    plain, named = tiny(), tiny(task={"kind": "math"})
    cell = expand(plain)["s/grpo-seed42"]
    assert plain.task == DEFAULT_TASK == task_of(None)
    for settings in (training_settings, evaluation_settings, resolve):
        assert settings(plain, cell) == settings(named, cell)
        assert not {"task", "tasks"} & settings(plain, cell).keys()
    assert "task" not in benchmark_problems(plain, next(iter(plain.benchmarks.values())))


def test_a_task_is_in_what_it_decides_and_a_benchmarks_own_only_there() -> None:
    content = read_yaml(TINY)
    name = next(iter(content["benchmarks"]))
    content["benchmarks"][name]["task"] = {"kind": "clock"}
    study = Study.model_validate(content)
    cell = expand(study)["s/grpo-seed42"]
    assert "task" not in training_settings(study, cell)
    assert evaluation_settings(study, cell)["tasks"] == {name: {"kind": "clock"}}
    assert benchmark_problems(study, study.benchmarks[name])["task"] == {"kind": "clock"}
    assert Study.model_validate(study.model_dump(mode="json")) == study
    whole = tiny(task={"kind": "clock"})
    assert training_settings(whole, cell)["task"] == {"kind": "clock"}
    assert task_of({"kind": "choice", "options": 5}) == Choice(options=5)
    assert Choice(options=5).identity() == {"kind": "choice", "options": 5}
    assert evaluation_settings(whole, cell)["tasks"].keys() == whole.benchmarks.keys()


OWN = '''
from typing import Literal
from grpo_replay.tasks.math.task import Math


class Loud(Math):
    """Mathematics, loudly."""

    kind: Literal["loud"] = "loud"
    marks: int = 1

    def messages(self, problem):
        """The problem with exclamation marks."""
        return [{"role": "user", "content": problem["problem"] + "!" * self.marks}]
'''


def test_a_task_of_ones_own_is_named_by_its_path_and_known_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "own_task.py"
    file.write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_task", raising=False)
    section = {"kind": "import", "path": "own_task:Loud", "settings": {"marks": 2}}
    study = tiny(task=section)
    assert study.task.messages({"problem": "1 + 1"})[0]["content"] == "1 + 1!!"
    cell = expand(study)["s/grpo-seed42"]
    identity = training_settings(study, cell)["task"]
    assert identity.items() >= section.items() and len(identity["sha256"]) == 64
    assert task_of(identity) == study.task
    file.write_text(OWN.replace("exclamation marks", "marks"))
    with pytest.raises(ValidationError, match="the file of own_task:Loud has changed"):
        task_of(identity)


def test_a_task_that_cannot_ask_the_clock_is_refused_before_a_job() -> None:
    choice, content = {"kind": "choice"}, read_yaml(TINY)
    with pytest.raises(ValidationError, match="problems: source clock does not fit its task: opt"):
        tiny(task=choice)
    content["benchmarks"]["clock3"]["task"] = choice
    with pytest.raises(ValidationError, match="benchmarks.clock3: source clock does not fit"):
        Study.model_validate(content)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{kind: sorting}", "task: .*'sorting'"),
        ("{kind: choice, options: 1}", "task.options: .*greater than or equal to 2"),
        ("{kind: math, options: 4}", "task.options: unknown key"),
        (
            "{kind: import, path: 'no_such_lab:Task'}",
            "task: path: no_such_lab:Task cannot be",
        ),
        ("{kind: import, path: 'json:dumps'}", "task: path: json:dumps is no subclass of .*:Task"),
    ],
)
def test_a_wrong_task_is_named_with_its_place(section: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY.read_text() + f"\ntask: {section}\n")
    with pytest.raises(ConfigError, match=message):
        load_study(path)
