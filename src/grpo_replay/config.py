"""A study, strictly typed: unknown keys are refused. config/README.md explains every key.

Importing this module must stay cheap: Snakemake reads it before every run.
"""

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from grpo_replay.errors import suggestion
from grpo_replay.sources import (
    Benchmark,
    ClockProblems,
    Fraction,
    FromScratchModel,
    Model,
    Name,
    NonNegativeInt,
    PromptSelection,
    Strict,
    TrainingProblems,
    WarmStart,
)

# vLLM's part of each GPU in a training process (TRL's default), its weights and cache within it.
ROLLOUT_ENGINE_SHARE = 0.3


class Scale(Strict):
    """One model size, and what a run of it needs."""

    model: Model
    micro_batch: PositiveInt
    evaluation_max_tokens: PositiveInt
    evaluation_batch: PositiveInt
    hours_base: Annotated[float, Field(ge=0)]
    hours_train: PositiveFloat
    hours_evaluate: PositiveFloat
    gpus: NonNegativeInt
    sharding: Literal["none", "full"] = "none"
    memory_gb: PositiveFloat = 4.0

    @model_validator(mode="after")
    def _shards_need_processes(self) -> "Scale":
        if self.sharding == "full" and self.gpus < 2:
            raise ValueError(f"sharding full divides among GPUs: give gpus 2 or more ({self.gpus})")
        return self


# --- methods and grid ---

Priority = Literal["uniform", "sigma_g", "abs_advantage"]
Unit = Literal["query", "rollout"]


class NoReplay(Strict):
    """Plain GRPO."""

    composition: Literal["none"]


class Replay(Strict):
    """A point of the paper's design space: how the batch is composed, from what units, by what
    priority.
    """

    composition: Literal["pool", "anchored"]
    unit: Unit
    priority: Priority

    @model_validator(mode="after")
    def _advantage_is_per_rollout(self) -> "Replay":
        if self.priority == "abs_advantage" and self.unit == "query":
            raise ValueError(
                "priority abs_advantage needs unit rollout: a query has no single advantage"
            )
        return self


Method = Annotated[NoReplay | Replay, Field(discriminator="composition")]


class GridBlock(Strict):
    """A block of cells: the product of its axes; blocks may overlap, a shared cell is trained
    once.
    """

    scales: list[Name] = Field(min_length=1)
    methods: list[Name] = Field(min_length=1)
    tau_max: list[PositiveInt] = Field(min_length=1)
    replay_ratio: list[Annotated[float, Field(ge=0)]] = Field(min_length=1)
    alpha: list[Fraction] = Field(min_length=1)
    seeds: list[NonNegativeInt] = Field(min_length=1)


class Training(Strict):
    """The paper's Table 7, and the replay defaults of its section on the design space."""

    steps: PositiveInt
    rollouts_per_step: PositiveInt
    group_size: Annotated[int, Field(ge=2)]
    mini_batch: PositiveInt
    max_prompt_tokens: PositiveInt
    expected_prompts: PositiveInt | None = None
    max_completion_tokens: PositiveInt
    learning_rate: PositiveFloat
    weight_decay: Annotated[float, Field(ge=0)]
    adam_betas: tuple[Fraction, Fraction]
    gradient_clip: PositiveFloat
    clip_low: Fraction
    clip_high: PositiveFloat
    dual_clip: Annotated[float, Field(gt=1)]
    advantage_epsilon: Annotated[float, Field(ge=0)]
    priority_epsilon: PositiveFloat
    temperature: PositiveFloat
    precision: Literal["float32", "bfloat16"]
    gradient_checkpointing: bool
    rollout_engine: Literal["transformers", "vllm", "vllm_server"]
    replay_warmup: NonNegativeInt
    buffer_capacity: PositiveInt

    @property
    def updates_per_step(self) -> int:
        """Optimizer updates that one step of Algorithm 1 makes (paper: 256 / 128 = 2)."""
        return self.rollouts_per_step // self.mini_batch

    @model_validator(mode="after")
    def _sizes_divide(self) -> "Training":
        if self.rollouts_per_step % self.group_size:
            raise ValueError("rollouts_per_step must be a multiple of group_size")
        if self.rollouts_per_step % self.mini_batch:
            raise ValueError("rollouts_per_step must be a multiple of mini_batch")
        return self


class Checkpoints(Strict):
    """How often a training run can be continued from, in steps; kept after success or not."""

    every: PositiveInt
    keep: bool


class Evaluation(Strict):
    """How answers are sampled (paper, section "Evaluation")."""

    engine: Literal["transformers", "vllm"]
    temperature: PositiveFloat
    top_p: Annotated[float, Field(gt=0, le=1)]
    top_k: NonNegativeInt
    samples_per_wave: PositiveInt
    first_wave_seed: NonNegativeInt
    grade_timeout_seconds: PositiveFloat


class Study(Strict):
    """A whole study file."""

    study: Name
    title: str
    hub_cache: str | None = None
    scales: dict[Name, Scale] = Field(min_length=1)
    methods: dict[Name, Method] = Field(min_length=1)
    grid: list[GridBlock] = Field(min_length=1)
    problems: TrainingProblems
    warm_start: WarmStart | None = None
    prompt_selection: PromptSelection | None = None
    benchmarks: dict[Name, Benchmark] = Field(min_length=1)
    training: Training
    checkpoints: Checkpoints
    evaluation: Evaluation

    @model_validator(mode="after")
    def _references_exist(self) -> "Study":
        for block in self.grid:
            for kind, used, known in (
                ("scale", block.scales, self.scales),
                ("method", block.methods, self.methods),
            ):
                for name in used:
                    if name not in known:
                        raise ValueError(f"grid: unknown {kind} {name!r}{suggestion(name, known)}")
        for name, method in self.methods.items():
            if name == "base":
                raise ValueError("methods: 'base' is the untrained model; choose another name")
            if isinstance(method, NoReplay) and name != "grpo":
                raise ValueError(f"methods: {name!r} has composition none, which is named grpo")
        scratch = [n for n, s in self.scales.items() if isinstance(s.model, FromScratchModel)]
        if scratch and not isinstance(self.problems, ClockProblems):
            raise ValueError(
                f"scales.{scratch[0]}.model: source from_scratch needs problems with source clock"
            )
        prompts = self.training.rollouts_per_step // self.training.group_size
        if self.prompt_selection and self.prompt_selection.keep < prompts:
            raise ValueError(f"prompt_selection.keep: a step needs {prompts} prompts")
        return self

    @model_validator(mode="after")
    def _micro_batches_divide(self) -> "Study":
        for name, scale in self.scales.items():
            rows = scale.micro_batch * max(scale.gpus, 1)
            if self.training.mini_batch % rows:
                raise ValueError(
                    f"scales.{name}.micro_batch: training.mini_batch {self.training.mini_batch} "
                    f"must be a multiple of micro_batch x gpus (found {rows})"
                )
        return self
