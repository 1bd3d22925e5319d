"""The claims of the paper and of a study, judged over training seeds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from grpo_replay.reporting.labels import setting_name
from grpo_replay.reporting.numbers.conditions import Condition, used_scales
from grpo_replay.reporting.numbers.placed_claims import Placed, grpo_at, place, place_of_paper
from grpo_replay.reporting.numbers.seed_values import Scores, seed_values
from grpo_replay.statistics import claims as statistics
from grpo_replay.statistics.benchmark_means import FloatArray
from grpo_replay.statistics.claims import Finding, Verdict
from grpo_replay.statistics.seed_tests import FEWEST_SEEDS
from grpo_replay.study.claims import BestOf, Claim, Trend
from grpo_replay.study.config import Study
from grpo_replay.study.yaml_values import read_yaml

# The values of a condition's seeds in a claim's metric.
_Values = Callable[[Condition, Claim], pd.DataFrame]
PAPER_FILE = Path(__file__).parents[1] / "claims.yaml"


@dataclass(frozen=True)
class JudgedClaim:
    """A claim at a scale and what its seeds say: `seeds` have all values, `planned` are those that
    the grid has. `finding` is None without any; `p` is Holm-adjusted, nan where there is no test.
    Differences are above 0 if the claim is right.
    """

    placed: Placed
    seeds: int
    finding: Finding | None
    p: float
    verdict: Verdict

    @property
    def planned(self) -> int:
        """How many seeds the grid gives to all of its conditions."""
        return len(self.placed.seeds)

    @property
    def verdict_text(self) -> str:
        """The verdict; with the number of seeds where these cannot give one."""
        if self.seeds < self.planned:
            return f"{Verdict.UNDECIDED} ({self.seeds} of {self.planned} seeds)"
        if self.seeds < FEWEST_SEEDS:
            return f"{Verdict.UNDECIDED} ({self.seeds} seed{'s' * (self.seeds != 1)})"
        return str(self.verdict)

    @property
    def compared(self) -> str:
        """What is compared, in words, as a difference that is above 0 if the claim is right; of
        several rivals the one that decides.
        """
        of, against = self.placed.of, self.placed.against
        claim = self.placed.claim
        if isinstance(claim.contrast, Trend):
            over = claim.contrast.over
            names = [conditions[0].name_without(over) for conditions in (of, against) if conditions]
            sign = "−" * (len(names) == 1 and claim.sign < 0)
            return f"{sign}{' − '.join(names[:: claim.sign])}, over {setting_name(over)}"
        names = [of[0].name, against[self.finding.rival if self.finding else 0].name]
        if isinstance(claim.contrast, BestOf) and self.finding is None:
            names[1] = f"each of {len(against)}"
        return " − ".join(names[:: claim.sign])


@cache
def paper_claims() -> tuple[Claim, ...]:
    """The paper's claims, as reporting/claims.yaml has them."""
    return tuple(TypeAdapter(list[Claim]).validate_python(read_yaml(PAPER_FILE)))


def judge(study: Study, scores: pd.DataFrame, results: Path) -> list[list[JudgedClaim]]:
    """The paper's claims, then the study's own: each a family of its own for Holm's adjustment.

    A claim that the grid cannot place is left out: `unplaced` names the paper's.
    """
    families = [[one for claim in paper_claims() for one in place_of_paper(study, claim)]]
    families += [[one for claim in study.claims for one in place(study, claim)]]
    grpo = {scale: grpo_at(study, scale) for scale in used_scales(study)}
    found = Scores(scores, results)

    def values(condition: Condition, claim: Claim) -> pd.DataFrame:
        return seed_values(found, condition, claim.metric, grpo[condition.scale])

    return [_judged(family, values) for family in families]


def unplaced(study: Study) -> list[Claim]:
    """The paper's claims of which the grid lacks something."""
    return [claim for claim in paper_claims() if not place_of_paper(study, claim)]


def _judged(family: list[Placed], values: _Values) -> list[JudgedClaim]:
    differences = [_differences(placed, values) for placed in family]
    seeds = [values_RN.shape[1] for values_RN in differences]
    whole = [
        FEWEST_SEEDS <= n == len(placed.seeds) for n, placed in zip(seeds, family, strict=True)
    ]
    findings = [
        _finding(placed.claim, values_RN, max(sum(whole), 1)) if values_RN.shape[1] else None
        for placed, values_RN in zip(family, differences, strict=True)
    ]
    taken = [finding if of else None for finding, of in zip(findings, whole, strict=True)]
    judged = statistics.judged(taken)
    return [
        JudgedClaim(placed, n, finding, *verdict)
        for placed, n, finding, verdict in zip(family, seeds, findings, judged, strict=True)
    ]


def _finding(claim: Claim, difference_RN: FloatArray, tests: int) -> Finding:
    if isinstance(claim.contrast, BestOf):
        return statistics.best_of(difference_RN, claim.margin, tests)
    return statistics.pair(difference_RN[0], claim.margin, tests)


def _differences(placed: Placed, values: _Values) -> FloatArray:
    """The differences (R, N) of the seeds that have all values, a row a rival, above 0 if the claim
    is right.
    """
    claim, against = placed.claim, placed.against
    of = [values(condition, claim) for condition in placed.of]
    others = [values(condition, claim) for condition in against]
    if isinstance(claim.contrast, Trend):
        leads = [_lead(*pair) for pair in zip(of, others, strict=True)] if against else of
        points = pd.concat([lead.mean(axis=1) for lead in leads], axis=1).dropna()
        if points.empty:
            return np.zeros((1, 0))
        return claim.sign * statistics.rise_over(points.to_numpy().T, placed.axis)[None, :]
    leads = pd.concat([_lead(of[0], other).mean(axis=1) for other in others], axis=1).dropna()
    return claim.sign * leads.to_numpy(dtype=float).T


def _lead(values: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """The difference of each shared seed and benchmark that both have."""
    shared = values.index.intersection(others.index)
    return values.loc[shared] - others.loc[shared]
