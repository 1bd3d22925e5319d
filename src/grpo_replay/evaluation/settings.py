"""How answers are sampled, as the rule hands it over."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class SamplingSettings:
    """How answers are drawn (paper, section "Evaluation"); the keys of `grid.evaluation_settings`.

    `k` is samples a problem by benchmark, `batch` the sequences that are decoded at a time,
    `max_tokens` the budget of one answer, `top_k` 0 means no limit. `sampler_version` is that of
    this code: chunks that another one drew are not taken over. `tasks` is the identity of the task
    of each benchmark that is not mathematics.
    """

    sampler_version: int
    engine: Literal["transformers", "vllm"]
    temperature: float
    top_p: float
    top_k: int
    samples_per_wave: int
    first_wave_seed: int
    batch: int
    k: dict[str, int]
    max_tokens: int
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """What a manifest holds; without `tasks` where there are none, as before there were any."""
        settings = asdict(self)
        return settings if self.tasks else {k: v for k, v in settings.items() if k != "tasks"}
