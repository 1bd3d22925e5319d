"""The claims of the paper and of the study, each with its evidence over seeds and its verdict."""

import math

from grpo_replay.reporting.numbers.claims import JudgedClaim, judge, unplaced
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.placed_claims import PAPER_STEPS, age_of_paper
from grpo_replay.reporting.numbers.seed_values import SEED_METRICS
from grpo_replay.reporting.tables import notes
from grpo_replay.reporting.tables.parts import study_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Column, Row, Table
from grpo_replay.statistics.seed_tests import FEWEST_SEEDS, LEVEL, detectable_effect

STUDY = "this study"
PAPER_AGES = (1, 10, 30, 60)
_STUB = {
    "claim": "Claim",
    "where": "Where",
    "scale": "Scale",
    "compared": "Compared",
    "metric": "In",
    "verdict": "Verdict",
    "seeds": "Seeds (n)",
}
_COLUMNS = [
    Column("difference", "", "Difference", "95 % interval", decimals=2),
    Column("p", "", "p", "adjusted", decimals=4),
    Column("margin", "", "Margin", "90 % interval", decimals=2),
    Column("p_equal", "", "p of equality", "TOST", decimals=4),
    Column("detectable", "", "Detectable", "80 % power", decimals=2),
    Column("needed", "", "Seeds needed", "for the margin", decimals=0),
]
_CONTRASTS = (
    "Differences are over training seeds, paired by seed, mean over the benchmarks, and above 0 if "
    "the claim is right. Over scales or a setting: the rise of each seed from the first to the "
    "last point along its line, on the rank of the scale and the logarithm of a number. Best of "
    "several: the pair that decides; each pair is tested at 5 %, and p is the largest. Lengths: "
    "100 times the logarithm, so about percent."
)
_VERDICTS = (
    f"Verdict: holds, if the adjusted p of the paired t test is below {LEVEL} and the sign right; "
    "fails, if it is and the sign wrong; equal within the margin, if the 90 % interval lies inside "
    "it (two one-sided t tests at 5 %); else undecided. p is Holm-adjusted over all claims of the "
    "paper in this table, and over the study's own apart."
)


def build(source: Source) -> Table:
    """A row a claim and scale; claims whose conditions the grid lacks are named below."""
    families = judge(source.study, source.scores, source.results)
    judged = [one for family in families for one in family]
    conditions = list(dict.fromkeys(c for one in judged for c in one.placed.conditions))
    tests = max((_tests(family) for family in families), default=0)
    return study_table(
        source,
        "Claims over training seeds",
        _STUB,
        _COLUMNS,
        [_row(source, one) for one in judged],
        conditions,
        *(_CONTRASTS, _VERDICTS, _power_note(tests), *_few_seeds(judged), *_ages(source)),
        *_left_out(source),
        notes.replay_but_age,
    )


def _row(source: Source, judged: JudgedClaim) -> Row:
    claim, placed = judged.placed.claim, judged.placed
    labels = {
        "study": source.study.study,
        "claim": claim.claim,
        "where": claim.where or STUDY,
        "scale": placed.scale or "all",
        "compared": judged.compared,
        "metric": SEED_METRICS[claim.metric].heading,
        "verdict": judged.verdict_text,
        "seeds": judged.seeds,
    }
    return Row(labels, _numbers(judged))


def _numbers(judged: JudgedClaim) -> dict[str, Estimate | None]:
    """The numbers of a row; what the seeds do not say is a dash."""
    margin = judged.placed.claim.margin
    if judged.finding is None:
        return {"margin": Estimate(margin)}
    found, n = judged.finding.evidence, judged.seeds
    ends = _interval(found.low, found.high)
    return {
        "difference": Estimate(found.difference, **ends, n=n),
        "p": Estimate(judged.p, n=n),
        "margin": Estimate(margin, **_interval(found.equal_low, found.equal_high), n=n),
        "p_equal": Estimate(judged.finding.p_equal, n=n),
        "detectable": Estimate(found.detectable, n=n),
        "needed": None if found.needed is None else Estimate(float(found.needed), n=n),
    }


def _interval(low: float, high: float) -> dict[str, float]:
    return {} if math.isnan(low) else {"seeds_low": low, "seeds_high": high}


def _tests(family: list[JudgedClaim]) -> int:
    return sum(not math.isnan(one.p) for one in family)


def _power_note(tests: int) -> str:
    """What a number of seeds can detect, in standard deviations of the paired difference."""
    level = LEVEL / max(tests, 1)
    effects = ", ".join(f"{n} seeds {detectable_effect(n, level):.2g}" for n in (3, 5, 20))
    return (
        "Detectable: the smallest true difference that these seeds find in 80 % of cases at their "
        "own spread, and the seeds needed to find one as large as the margin, both at 5 % over the "
        f"number of tests ({max(tests, 1)}): {effects} standard deviations of the paired "
        "difference. Twenty seeds can show equality within about 4 points."
    )


def _few_seeds(judged: list[JudgedClaim]) -> list[str]:
    """What one or two seeds can decide."""
    if all(one.planned >= FEWEST_SEEDS for one in judged):
        return []
    return [
        f"Below {FEWEST_SEEDS} seeds nothing is decided: the difference is that of these trained "
        "models, and their interval over problems (the other tables) leaves out how another seed "
        "would have trained."
    ]


def _ages(source: Source) -> list[str]:
    """The study's ages beside the paper's, where its runs are shorter."""
    steps = source.study.training.steps
    if steps == PAPER_STEPS:
        return []
    ages = ", ".join(str(age_of_paper(source.study, age)) for age in PAPER_AGES)
    return [
        f"Ages: τ_max 1, 10, 30, 60 of the paper's {PAPER_STEPS} steps are {ages} of this study's "
        f"{steps}; a study that has none of these takes the paper's numbers as they are."
    ]


def _left_out(source: Source) -> list[str]:
    claims = [f"{claim.claim} ({claim.where})" for claim in unplaced(source.study)]
    return [f"The grid cannot say: {'; '.join(claims)}."] if claims else []
