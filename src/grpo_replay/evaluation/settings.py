"""How answers are sampled, as the rule hands it over."""

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal


@dataclass(frozen=True)
class Decoding:
    """How an engine draws one answer: `max_tokens` is its budget, `top_k` 0 means no limit."""

    engine: Literal["transformers", "vllm"]
    temperature: float
    top_p: float
    top_k: int
    max_tokens: int


@dataclass(frozen=True)
class SamplingSettings(Decoding):
    """How answers are drawn (paper, section "Evaluation"); the keys of `cells.evaluation_settings`.

    `k` is samples a problem by benchmark, `batch` the sequences that are decoded at a time.
    `sampler_version` is that of this code: chunks that another one drew are not taken over. `tasks`
    is the identity of the task of each benchmark that is not mathematics.
    """

    sampler_version: int
    samples_per_wave: int
    first_wave_seed: int
    batch: int
    k: dict[str, int]
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)

    def given(self) -> dict[str, Any]:
        """The settings that are not at a default: one that is added with a default makes no
        finished answers stale.
        """
        found = {}
        for setting in fields(self):
            made = setting.default_factory
            default = setting.default if made is MISSING else made()
            if (value := getattr(self, setting.name)) != default:
                found[setting.name] = value
        return found
