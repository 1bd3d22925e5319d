"""The rows of the paper's tables as partial identities: what a study calls its methods, and how a
cell is named, plays no part.
"""

from collections.abc import Mapping

from grpo_replay.methods.method import Setting
from grpo_replay.reporting.labels import BASE, GRPO, OURS
from grpo_replay.reporting.numbers.conditions import PartialIdentity

BASE_MODEL = PartialIdentity(BASE, None)
NO_REPLAY = PartialIdentity(GRPO, ())
# Composition, unit and priority of the methods of Table 1.
REPLAYING = {
    "uniform-pool": ("pool", "query", "uniform"),
    "sigma_g-pool": ("pool", "query", "sigma_g"),
    OURS: ("anchored", "rollout", "abs_advantage"),
}


def replayed(
    composition: str, unit: str, priority: str, further: Mapping[str, Setting] | None = None
) -> PartialIdentity:
    """A row that replays, under the paper's name of it, else under its three axes; `further` are
    settings that it names besides.
    """
    axes = (composition, unit, priority)
    name = next((n for n, known in REPLAYING.items() if known == axes), "-".join(axes))
    paths = ("replay.compose", "replay.unit", "replay.priority.kind")
    return PartialIdentity(name, tuple(zip(paths, axes, strict=True))).at(further or {})


UNIFORM_POOL, SIGMA_POOL, METHOD = (replayed(*axes) for axes in REPLAYING.values())
