"""Identities of trajectory balance (arXiv 2503.18929), in float64."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from grpo_replay.methods.loss import LossBatch
from grpo_replay.methods.method import Method
from grpo_replay.methods.trajectory_balance import TrajectoryBalance

K, TOKENS = 5, 7
GENERATOR = torch.Generator().manual_seed(0)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR, dtype=torch.float64)


LENGTHS = torch.tensor([7, 3, 1, 5, 6])
MASK = (torch.arange(TOKENS) < LENGTHS[:, None]).double()
REFERENCE = (-random(K, TOKENS).abs() * MASK).sum(1)
REWARDS = random(K)
BETA = 0.3


def policy_tokens() -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    drawn = torch.randn(K, TOKENS, generator=generator, dtype=torch.float64)
    return (-drawn.abs()).requires_grad_()


def residuals(
    tokens: torch.Tensor, rewards: torch.Tensor, beta: float = BETA, attached: bool = False
) -> torch.Tensor:
    """e_i of the paper's Equation 5; log Z is the group's mean of z."""
    policy = (tokens * MASK).sum(1)
    z = REFERENCE - policy + rewards / beta
    log_z = z.mean() if attached else z.mean().detach()
    return log_z + policy - REFERENCE - rewards / beta


def gradient(loss: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(loss, tokens)[0]


def surrogate(tokens: torch.Tensor, rewards: torch.Tensor, behaviour: torch.Tensor) -> torch.Tensor:
    """The part's loss, a sum over tokens, with the advantages of the moment."""
    part = TrajectoryBalance(beta=BETA)
    advantages = part.advantages(rewards, (tokens * MASK).sum(1).detach(), REFERENCE)
    return part.of(LossBatch(tokens, behaviour, advantages[:, None], MASK, 1.0))


def test_residuals_sum_to_nothing_and_are_the_advantages() -> None:
    tokens = policy_tokens()
    found = residuals(tokens, REWARDS)
    assert found.sum().item() == pytest.approx(0, abs=1e-12)
    z = REFERENCE - (tokens * MASK).sum(1) + REWARDS / BETA
    assert (found**2).mean().item() == pytest.approx(z.var(correction=0).item(), rel=1e-12)
    part = TrajectoryBalance(beta=BETA)
    advantages = part.advantages(REWARDS, (tokens * MASK).sum(1), REFERENCE)
    assert torch.allclose(-BETA * found, advantages, atol=1e-12, rtol=0)


def test_a_constant_on_all_rewards_changes_nothing() -> None:
    tokens = policy_tokens()
    losses = [(residuals(tokens, rewards) ** 2).mean() for rewards in (REWARDS, REWARDS + 3.0)]
    assert losses[0].item() == pytest.approx(losses[1].item(), rel=1e-12)
    assert torch.allclose(*(gradient(loss, tokens) for loss in losses), atol=1e-10)
    behaviour = torch.zeros(K, TOKENS, dtype=torch.float64)
    found = [gradient(surrogate(tokens, r, behaviour), tokens) for r in (REWARDS, REWARDS + 3.0)]
    assert torch.allclose(*found, atol=1e-12)


@pytest.mark.parametrize(("wrong", "beta"), [(0.0, 0.012), (-1.0, 0.024)])
def test_at_the_reference_only_rewards_count(wrong: float, beta: float) -> None:
    """A_i = r_i - mean r and L = Var(r) / beta^2: 1302.083 with 5 of 20 right."""
    rewards = np.array([1.0] * 5 + [wrong] * 15)
    same = -np.arange(20.0)
    balance = TrajectoryBalance(beta=beta).start(0)
    advantages = balance.advantages(rewards, same, same)
    assert advantages == pytest.approx(rewards - rewards.mean())
    told = balance.metrics(1)
    assert told["balance/loss"] == pytest.approx(1302.083, abs=1e-3)
    assert told["balance/kl_mean"] == told["balance/kl_max"] == 0
    assert balance.metrics(2)["balance/loss"] is None  # each step is told once


def test_the_gradient_through_log_z_is_nothing() -> None:
    tokens = policy_tokens()
    losses = [(residuals(tokens, REWARDS, attached=a) ** 2).mean() for a in (False, True)]
    assert torch.allclose(*(gradient(loss, tokens) for loss in losses), atol=1e-10)


def test_the_surrogate_has_the_gradient_of_the_squared_residuals() -> None:
    """Up to 2 / (K beta); the log-probabilities of birth play no part."""
    tokens = policy_tokens()
    literal = gradient((residuals(tokens, REWARDS) ** 2).mean(), tokens)
    for behaviour in (torch.zeros(K, TOKENS).double(), random(K, TOKENS) * 50):
        ours = gradient(surrogate(tokens, REWARDS, behaviour), tokens)
        assert ours.norm() > 0
        assert torch.allclose(literal, 2 / (K * BETA) * ours, atol=1e-10)


@pytest.mark.parametrize(
    ("rewards", "beta", "z"), [([1, 0, 0, 1], 0.5, 4.194528), ([1, -1, -1, 1], 1.0, 1.543081)]
)
def test_the_target_is_a_fixed_point(rewards: list[float], beta: float, z: float) -> None:
    reference, r = np.array([0.4, 0.3, 0.2, 0.1]), np.array(rewards, float)
    weights = reference * np.exp(r / beta)
    assert weights.sum() == pytest.approx(z, abs=1e-6)
    target = weights / weights.sum()
    assert target == pytest.approx([0.704638, 0.071522, 0.047681, 0.176159], abs=1e-6)
    for drawn in ([0, 1, 2, 3], [0, 0, 1, 3, 3], [2, 2, 1]):
        part = TrajectoryBalance(beta=beta)
        found = part.advantages(r[drawn], np.log(target[drawn]), np.log(reference[drawn]))
        assert np.abs(found).max() < 1e-12


@pytest.mark.parametrize("kl", [True, False])
def test_training_ends_at_the_target_and_without_the_penalty_on_rewarded_outcomes(
    kl: bool,
) -> None:
    """A softmax on a fixed uniform behaviour."""
    random, beta = np.random.default_rng(0), 0.5
    reference, rewards = np.log([0.4, 0.3, 0.2, 0.1]), np.array([1.0, 0.0, 0.0, 1.0])
    part, logits = TrajectoryBalance(beta=beta), reference.copy()
    for _ in range(20_000):
        drawn = random.integers(0, 4, 8)
        policy = logits - np.log(np.exp(logits).sum())
        compared = reference if kl else policy
        advantages = part.advantages(rewards[drawn], policy[drawn], compared[drawn])
        step = np.bincount(drawn, weights=advantages, minlength=4)
        logits += 0.1 * (step - np.exp(policy) * step.sum()) / 8
    found = np.exp(logits - np.log(np.exp(logits).sum()))
    if kl:
        assert found == pytest.approx([0.704638, 0.071522, 0.047681, 0.176159], abs=1e-5)
    else:
        assert found[[1, 2]].sum() < 1e-3


def test_whole_groups_are_drawn_or_the_study_is_refused() -> None:
    loss = {"kind": "trajectory_balance", "beta": 0.02}
    with pytest.raises(ValidationError, match="trajectory_balance .* give replay.unit query"):
        Method.model_validate({"loss": loss, "replay": {"compose": "anchored", "unit": "rollout"}})
    for replay in ({"compose": "none"}, {"compose": "pool", "unit": "query"}):
        Method.model_validate({"loss": loss, "replay": replay})
