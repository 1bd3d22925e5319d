"""Several weighted rewards through the real `train()`, one of them a file outside the package."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scripted import TINY, Probe, Script, make_probe

from grpo_replay.errors import ConfigError, TrainingError
from grpo_replay.study.cells import expand, training_settings
from grpo_replay.study.config import Study
from grpo_replay.study.yaml_values import read_yaml
from grpo_replay.tasks.math.task import Math
from grpo_replay.tasks.rewards import RewardFault, rewards_of, weighted

OWN = '''
def short(completions, answer, problem, **columns):
    """A tenth for each character less than 20, for clocks alone; nothing for an answer with a 3."""
    texts = [completion[0]["content"] for completion in completions]
    assert all("clock" in text for text in problem) and len(answer) == len(texts)
    return [None if "3" in text else 0.1 * (20 - len(text)) for text in texts]


def raises(completions, problem_id, **columns):
    return [1.0 / (len(c[0]["content"]) - len("x \\\\boxed{x}")) for c in completions]


def few(completions, **columns):
    return [0.0] * (len(completions) - 1)


def words(completions, **columns):
    return [0.0, "good", *[0.0] * (len(completions) - 2)]


def infinite(completions, **columns):
    return [0.0, 0.0, float("inf"), *[0.0] * (len(completions) - 3)]


def narrow(completions):
    return [0.0] * len(completions)


async def later(completions, **columns):
    return [0.0] * len(completions)


def answer(completions, **columns):
    return [0.0] * len(completions)


word = "no function"
'''


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the functions, in a folder of its own on the path of imports."""
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "own_rewards.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "own_rewards", raising=False)
    return folder / "own_rewards.py"


def settings_with(rewards: dict[str, float], **training: object) -> dict:
    content = read_yaml(TINY)
    study = Study.model_validate(
        {**content, "rewards": rewards, "training": {**content["training"], **training}}
    )
    return training_settings(study, expand(study)["s/grpo-seed42"])


def trained(rewards: dict[str, float], model: Path, run: Path, steps: int = 2) -> Probe:
    probe = make_probe(settings_with(rewards, steps=steps), model, run, Script(share=0.5))
    probe.trainer.train()
    return probe


def test_two_weighted_rewards_train_and_are_told_apart(
    tiny_model: Path, tmp_path: Path, lab: Path
) -> None:
    probe = trained({"answer": 2.0, "own_rewards:short": -0.5}, tiny_model, tmp_path / "run")
    rows, records = probe.records.rollouts.table(), probe.records.metrics.table()
    texts = rows.text.str.removesuffix("<|im_end|>")
    right = ~texts.str.contains("{x}", regex=False)
    length = np.where(texts.str.contains("3"), np.nan, 0.1 * (20 - texts.str.len()))
    answer = np.where(right, 1.0, -1.0)
    expected = 2.0 * answer - 0.5 * np.nan_to_num(length)
    assert np.isnan(length).any() and right.any() and not right.all()
    np.testing.assert_allclose(rows.reward, expected, atol=1e-6)
    assert rows.correct.tolist() == right.tolist()
    for step, own in rows.assign(answer=answer, short=length).groupby("step"):
        record = records[records.step == step].iloc[0]
        assert record["reward/mean"] == pytest.approx(own.reward.mean())
        assert record["reward/answer"] == pytest.approx(own.answer.mean())
        assert record["reward/short"] == pytest.approx(own.short.mean(), rel=1e-5)  # of those given
        lengths = own.groupby("correct").length.mean()
        assert record["completions/mean_length_correct"] == pytest.approx(lengths[True])
        assert record["completions/mean_length_incorrect"] == pytest.approx(lengths[False])
    for _, group in rows.groupby("group_id"):
        std = group.reward.std(ddof=0)
        if std > 1e-6:
            advantage = (group.reward - group.reward.mean()) / (std + 1e-6)
            np.testing.assert_allclose(group.advantage, advantage, rtol=1e-3, atol=1e-4)
    assert {round(a, 4) for a in rows[rows.survived].advantage} >= {
        round(row.advantage, 4) for row in probe.rows
    }


def test_correct_is_the_verifiers_word_and_not_the_sign_of_a_reward(
    tiny_model: Path, tmp_path: Path, lab: Path
) -> None:
    """Every reward is above 0, also those of wrong answers."""
    probe = trained({"own_rewards:short": 1.0}, tiny_model, tmp_path / "run", steps=1)
    rows = probe.records.rollouts.table()
    right = ~rows.text.str.contains("{x}", regex=False)
    assert (rows.reward.dropna() > -1).all() and rows.reward.isna().any()
    assert (rows.reward > 0).sum() != right.sum() and rows.correct.tolist() == right.tolist()
    record = probe.records.metrics.table().iloc[0]
    assert record["reward/unscored"] == rows.reward.isna().sum()
    scored = rows[rows.reward.notna()]
    assert record["completions/mean_length_correct"] == pytest.approx(
        scored[scored.correct].length.mean()
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raises", r"row \d+ \(problem clock-train-\d+\): raised ZeroDivisionError: float div.*"),
        ("few", r"returned 31 values for 32 completions"),
        ("words", r"row 1 \(problem clock-train-\d+\): returned 'good'"),
        ("infinite", r"row 2 \(problem clock-train-\d+\): returned the infinite number inf"),
    ],
)
def test_what_is_no_reward_ends_the_training_before_the_update(
    name: str, message: str, tiny_model: Path, tmp_path: Path, lab: Path
) -> None:
    settings = settings_with({"answer": 1.0, f"own_rewards:{name}": 1.0}, steps=2)
    probe = make_probe(settings, tiny_model, tmp_path / "run", Script(share=0.5))
    before = {n: w.detach().clone() for n, w in probe.trainer.model.named_parameters()}
    with pytest.raises(
        TrainingError,
        match=rf"^training step 1: rewards.own_rewards:{name}.*{message}: mend the function",
    ) as raised:
        probe.trainer.train()
    assert "\n" not in str(raised.value)
    assert all((before[n] == w).all() for n, w in probe.trainer.model.named_parameters())
    assert not probe.losses


def test_the_file_of_a_reward_is_in_the_cell_and_must_stay_as_planned(
    tiny_model: Path, tmp_path: Path, lab: Path
) -> None:
    settings = settings_with({"answer": 1.0, "own_rewards:short": 0.1})
    assert settings["rewards"] == {"answer": 1.0, "own_rewards:short": 0.1}
    assert list(settings["reward_files"]) == ["own_rewards:short"]
    assert json.loads(json.dumps(settings)) == settings
    lab.write_text(OWN.replace("0.1 *", "0.2 *"))
    assert settings_with(settings["rewards"])["reward_files"] != settings["reward_files"]
    with pytest.raises(ConfigError, match="rewards: own_rewards:short: its file has changed since"):
        make_probe(settings, tiny_model, tmp_path / "run")
    assert not {"rewards", "reward_files"} & settings_with({"answer": 1.0}).keys()


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ({"answr": 1.0}, r"answr: the task has no such reward \(did you mean 'answer'\?\)"),
        ({"own_rewards:none": 1.0}, "own_rewards:none: own_rewards has no none"),
        ({"no_such_lab:short": 1.0}, "no_such_lab:short cannot be imported.*: ModuleNotFoundError"),
        ({"own_rewards:word": 1.0}, "own_rewards:word is no function"),
        ({"own_rewards:narrow": 1.0}, "own_rewards:narrow must be a plain function of completions"),
        ({"own_rewards:later": 1.0}, "own_rewards:later must be a plain function of completions"),
        ({"answer": 1.0, "own_rewards:answer": 1.0}, "the name 'answer' is taken, rename"),
        ({"answer": 0.0}, "every weight is 0"),
        ({"answer": float("inf")}, "rewards.answer"),
        ({"answer": "1"}, "rewards.answer"),
        ({}, "rewards"),
    ],
)
def test_a_wrong_reward_is_named_as_the_study_is_read(
    rewards: dict, message: str, lab: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        Study.model_validate({**read_yaml(TINY), "rewards": rewards})


def test_weights_of_what_is_missing() -> None:
    nan = np.nan
    values = np.array([[1.0, 0.5], [nan, 0.5], [1.0, nan], [nan, nan]])
    np.testing.assert_array_equal(weighted(values, [1.0, 2.0]), [2.0, 1.0, 1.0, nan])
    # A function of weight 0 is only looked at: it gives no completion a reward.
    np.testing.assert_array_equal(weighted(values, [1.0, 0.0]), [1.0, nan, 1.0, nan])


def test_numbers_of_other_libraries_are_rewards(lab: Path) -> None:
    reward = rewards_of(Math(), {"answer": 1.0})[0]
    kept = [np.float32(0.5), np.int64(1), True, None, pd.NA]
    good = type(reward)("x", "x", 1.0, lambda completions, **_: kept[:4], None)
    assert good.values([0] * 4)[:3] == [0.5, 1.0, 1.0] and np.isnan(good.values([0] * 4)[3])
    bad = type(reward)("x", "x", 1.0, lambda completions, **_: kept, None)
    with pytest.raises(RewardFault, match="row 4: returned <NA>"):
        bad.values([0] * 5)
