"""Group-relative advantages with the population standard deviation (paper, section "Objective").

TRL uses the sample standard deviation and 1e-4, and gives an unscored completion reward 0; the
paper does neither.
"""

import numpy as np

# Equal rewards that are no dyadic numbers leave a residue of rounding; a real spread is far larger.
ZERO_STD_TOLERANCE = 1e-6


def group_advantages(
    rewards: np.ndarray, group_size: int, eps: float = 1e-6
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A = (r - mu_g) / (sigma_g + eps) for rewards in which each group stands together.

    Args:
        rewards: shape (prompts * group_size,); NaN (or None) marks a completion without a reward,
            which gets
            advantage 0 and stays out of its group's mean and standard deviation.
        group_size: G, completions a prompt.
        eps: added to sigma_g.

    Returns:
        Advantages, mu_g and sigma_g, each of shape (prompts * group_size,) in float64. A group
        whose rewards are all equal has sigma_g exactly 0 and advantages 0; so has one without
        rewards, whose mu_g is NaN.

    Raises:
        ValueError: where the number of rewards is no multiple of the group size.
    """
    flat = np.array(rewards, dtype=np.float64)
    if flat.ndim != 1 or len(flat) % group_size:
        raise ValueError(f"{flat.shape} rewards do not divide into groups of {group_size}")
    rewards_PG = flat.reshape(-1, group_size)
    scored_PG = ~np.isnan(rewards_PG)
    count_P = scored_PG.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_P = np.where(scored_PG, rewards_PG, 0.0).sum(axis=1) / count_P
        spread_PG = np.where(scored_PG, rewards_PG - mean_P[:, None], 0.0)
        std_P = np.sqrt((spread_PG**2).sum(axis=1) / count_P)
        scale_P = np.abs(np.where(scored_PG, rewards_PG, 0.0)).max(axis=1)
        std_P = np.where(std_P > ZERO_STD_TOLERANCE * scale_P, std_P, 0.0)
        advantages_PG = spread_PG / (std_P + eps)[:, None]
    advantages_PG[std_P == 0.0] = 0.0
    return (
        advantages_PG.reshape(-1),
        np.repeat(mean_P, group_size),
        np.repeat(std_P, group_size),
    )
