"""Metrics against hand-computed cases; test_published.py has those that the paper printed."""

import math
from itertools import combinations

import numpy as np
import pytest

from grpo_replay.statistics.metrics import (
    accuracy_efficiency_score,
    avg_at_k,
    length_by_correctness,
    mean_pass_at_k,
    pass_at_k,
)


def test_avg_at_k_is_the_percent_of_all_samples() -> None:
    assert avg_at_k([[True, False], [True, True], [False, False]]) == pytest.approx(50.0)
    assert avg_at_k(np.array([[1, 0, 0, 0]])) == pytest.approx(25.0)


@pytest.mark.parametrize(
    "wrong", [[], [[]], [True, False], [[0.5, 1.0]], [[math.nan, 1.0]], [[None, True]]]
)
def test_avg_at_k_refuses_what_is_no_table_of_verdicts(wrong: list) -> None:
    with pytest.raises(ValueError, match="expected"):
        avg_at_k(wrong)


def test_pass_at_k_known_values() -> None:
    assert pass_at_k(16, 1, 8) == 0.5
    assert pass_at_k(16, 0, 16) == 0.0
    assert pass_at_k(16, 1, 16) == 1.0
    assert pass_at_k(16, 9, 8) == 1.0
    assert pass_at_k(5, 2, 1) == pytest.approx(0.4)
    # Whole-number arithmetic: C(1000, 500) has 300 digits.
    assert pass_at_k(1000, 1, 500) == pytest.approx(0.5)
    assert pass_at_k(np.int64(80), np.int64(1), np.int64(40)) == pytest.approx(0.5)


def test_pass_at_k_is_the_share_of_all_subsets() -> None:
    n = 7
    for c in range(n + 1):
        for k in range(1, n + 1):
            subsets = list(combinations([1] * c + [0] * (n - c), k))
            expected = sum(any(subset) for subset in subsets) / len(subsets)
            assert pass_at_k(n, c, k) == pytest.approx(expected)


def test_pass_at_k_names_k_and_n_where_k_is_above_n() -> None:
    with pytest.raises(ValueError, match=r"k=5 .* n=2"):
        pass_at_k(2, 0, 5)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 5, 2), (4, -1, 2), (4, 1, 0)])
def test_pass_at_k_refuses_impossible_counts(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError):
        pass_at_k(n, c, k)


def test_mean_pass_at_k_takes_each_problem_first() -> None:
    correct_PK = np.zeros((2, 16), dtype=bool)
    correct_PK[0, 3] = True
    # Problem by problem: (0.5 + 0) / 2. Pooled over problems it would be 1 - C(31,8)/C(32,8).
    assert mean_pass_at_k(correct_PK, 8) == pytest.approx(25.0)
    with pytest.raises(ValueError, match=r"k=17 .* n=16"):
        mean_pass_at_k(correct_PK, 17)


def test_mean_pass_at_k_ends_at_avg_and_at_any() -> None:
    correct_PK = np.random.default_rng(0).random((30, 16)) < 0.1
    curve = [mean_pass_at_k(correct_PK, k) for k in range(1, 17)]
    assert curve[0] == pytest.approx(avg_at_k(correct_PK))
    assert curve[-1] == pytest.approx(100 * correct_PK.any(axis=1).mean())
    assert np.all(np.diff(curve) > 0)


def test_aes_weighs_a_loss_by_five_and_a_gain_by_three() -> None:
    assert accuracy_efficiency_score(11, 90, 10, 100) == pytest.approx(0.1 + 3 * 0.1)
    assert accuracy_efficiency_score(9, 90, 10, 100) == pytest.approx(0.1 - 5 * 0.1)
    assert accuracy_efficiency_score(10, 120, 10, 100) == pytest.approx(-0.2)


def test_aes_is_nan_against_a_reference_of_zero() -> None:
    assert math.isnan(accuracy_efficiency_score(5, 90, 0, 100))
    assert math.isnan(accuracy_efficiency_score(0, 90, 0.0, 100))


def test_length_by_correctness_of_tables_and_vectors() -> None:
    assert length_by_correctness([10, 20, 60], [True, True, False]) == (15.0, 60.0)
    lengths_PK, correct_PK = [[10, 20], [30, 40]], [[True, False], [True, False]]
    assert length_by_correctness(lengths_PK, correct_PK) == (20.0, 30.0)


def test_length_by_correctness_is_nan_where_there_are_none() -> None:
    correct, incorrect = length_by_correctness([10, 20], [False, False])
    assert math.isnan(correct)
    assert incorrect == 15.0
    correct, incorrect = length_by_correctness([10, 20], [True, True])
    assert correct == 15.0
    assert math.isnan(incorrect)


def test_length_by_correctness_refuses_different_shapes() -> None:
    with pytest.raises(ValueError, match="differ in shape"):
        length_by_correctness([1, 2, 3], [True, False])
