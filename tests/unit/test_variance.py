"""Components of variance: from data with known ones, and as REML of statsmodels has them."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from statsmodels.regression.mixed_linear_model import MixedLM

from grpo_replay.statistics.variance import (
    Components,
    components,
    deviation_of_mean,
    deviation_over_seeds,
)

KNOWN = Components(6.0, 4.0, 15.0, 5.0, 8.0, 40.0)


def simulated(
    rng: np.random.Generator, conditions: int, seeds: int, problems: int, k: int
) -> tuple[np.ndarray, list, list]:
    """Percent correct (R, P) of answers to one benchmark, drawn around a mean of 50."""
    shape = (conditions, seeds, problems)
    rate = 50 + rng.normal(0, KNOWN.seed, (1, seeds, 1))
    rate = rate + rng.normal(0, KNOWN.training, (conditions, seeds, 1))
    rate = rate + rng.normal(0, KNOWN.problem, problems)
    rate = rate + rng.normal(0, KNOWN.method_problem, (conditions, 1, problems))
    rate = rate + rng.normal(0, KNOWN.run_problem, shape)
    correct = rng.binomial(k, np.clip(rate, 0, 100) / 100) * 100 / k
    runs = list(product(range(conditions), range(seeds)))
    return correct.reshape(-1, problems), [c for c, _ in runs], [s for _, s in runs]


def test_known_components_are_found() -> None:
    """The mean of the variances over 60 studies of two methods, five seeds, two benchmarks."""
    rng, found = np.random.default_rng(0), []
    for _ in range(60):
        percent_RP, condition_R, seed_R = simulated(rng, 2, 20, 80, 8)
        found.append(components(percent_RP, condition_R, seed_R, [0] * 40 + [1] * 40, 8))
    for name in ("seed", "training", "problem", "method_problem", "run_problem"):
        mean = np.sqrt(np.mean([getattr(one, name) ** 2 for one in found]))
        assert mean == pytest.approx(getattr(KNOWN, name), rel=0.08), name
    # An answer is right or wrong: its variance is p (1 - p), on average over the problems.
    expected = np.sqrt(2500 - 6.0**2 - 4.0**2 - 15.0**2 - 5.0**2 - 8.0**2)
    assert np.mean([one.sample for one in found]) == pytest.approx(expected, rel=0.01)


def test_a_balanced_study_has_the_components_of_reml() -> None:
    """Sample and run x problem are one there: a cell of the frame is a mean over the answers."""
    percent_RP, condition_R, seed_R = simulated(np.random.default_rng(1), 2, 6, 12, 64)
    own = components(percent_RP, condition_R, seed_R, [0] * 12, 64)
    assert min(own.seed, own.training, own.problem, own.method_problem, own.run_problem) > 0
    frame = pd.DataFrame(percent_RP)
    frame["condition"], frame["seed"] = condition_R, seed_R
    frame = frame.melt(["condition", "seed"], var_name="problem")
    parts = {
        "seed": "0 + C(seed)",
        "training": "0 + C(condition):C(seed)",
        "problem": "0 + C(problem)",
        "method_problem": "0 + C(condition):C(problem)",
    }
    model = MixedLM.from_formula(
        "value ~ C(condition)", frame, groups=np.ones(len(frame)), vc_formula=parts
    )
    fitted = model.fit(reml=True, method="lbfgs")
    found = dict(zip(model.exog_vc.names, fitted.vcomp, strict=True))
    for name in parts:
        assert getattr(own, name) ** 2 == pytest.approx(found[name], rel=0.03, abs=0.5), name
    assert own.run_problem**2 + own.sample**2 / 64 == pytest.approx(fitted.scale, rel=0.03)


def test_the_deviation_of_a_mean_is_that_of_new_studies() -> None:
    rng = np.random.default_rng(2)
    means = []
    for _ in range(3000):
        percent_RP, *_ = simulated(rng, 2, 3, 20, 4)
        means.append(percent_RP.reshape(2, -1).mean(axis=1))
    means = np.array(means)
    known = Components(6.0, 4.0, 15.0, 5.0, 8.0, np.sqrt(2500 - 366))
    own = deviation_of_mean(known, seeds=3, problems=20, k=4)
    assert means.std(axis=0) == pytest.approx([own, own], rel=0.05)
    difference = deviation_of_mean(known, seeds=3, problems=20, k=4, methods=2)
    assert np.std(means[:, 0] - means[:, 1]) == pytest.approx(difference, rel=0.05)
    # A larger study, whose problems stay: the differences of its seeds.
    percent_RP, *_ = simulated(rng, 2, 4000, 20, 4)
    of_seeds = np.subtract(*percent_RP.reshape(2, 4000, 20).mean(axis=-1))
    over_seeds = deviation_over_seeds(known, problems=20, k=4)
    assert of_seeds.std() == pytest.approx(over_seeds, rel=0.06)


def test_one_method_cannot_tell_the_seed_from_the_run() -> None:
    percent_RP, condition_R, seed_R = simulated(np.random.default_rng(3), 1, 200, 40, 8)
    found = components(percent_RP, condition_R, seed_R, [0] * 40, 8)
    assert np.isnan([found.seed, found.method_problem]).all()
    assert found.training == pytest.approx(np.hypot(KNOWN.seed, KNOWN.training), rel=0.12)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed_R": [0, 0, 0, 0]}, "two seeds"),
        ({"seed_R": [0, 1, 0, 2]}, "every condition needs every seed"),
        ({"benchmark_P": [0, 0, 1]}, "one problem"),
        ({"percent_RP": np.full((4, 3), np.nan)}, "nan"),
    ],
)
def test_what_has_no_components_is_refused(change: dict, told: str) -> None:
    study = {
        "percent_RP": np.eye(4, 3),
        "condition_R": [0, 0, 1, 1],
        "seed_R": [0, 1, 0, 1],
        "benchmark_P": [0, 0, 0],
    }
    with pytest.raises(ValueError, match=told):
        components(**study | change, k=8)
