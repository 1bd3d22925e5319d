"""A study, strictly typed: unknown keys are refused. config/README.md explains every key.

Importing this module must stay cheap: Snakemake reads it before every run.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Annotated, Literal

from pydantic import Field, model_validator

from grpo_replay.errors import DataError, suggestion
from grpo_replay.fields import Strict
from grpo_replay.methods.method import Method, Setting, vary
from grpo_replay.models.config import MAX_POSITIONS, FromScratchModel, Model, WarmStart
from grpo_replay.ranges import (
    Batch,
    Beta,
    Bound,
    Count,
    CountOrZero,
    Devices,
    FileName,
    Gigabytes,
    JobHours,
    JobHoursOrZero,
    LearningRate,
    Line,
    Name,
    Rollouts,
    Rows,
    Samples,
    Seconds,
    Seed,
    Temperature,
    Tokens,
    TopP,
    WeightDecay,
)
from grpo_replay.study.claims import Claim
from grpo_replay.tasks.any_task import DEFAULT_TASK, AnyTask
from grpo_replay.tasks.config import (
    Benchmark,
    Benchmarks,
    ClockBenchmark,
    ClockProblems,
    PromptSelection,
    TrainingProblems,
)
from grpo_replay.tasks.rewards import DEFAULT_REWARDS, Rewards, rewards_of

# vLLM's part of each GPU in a training process (TRL's default), its weights and cache within it.
ROLLOUT_ENGINE_SHARE = 0.3
# Snakemake plans 5,000 cells in a minute; what is far beyond is a slip in an axis.
MAX_CELLS = 20_000
# Answers are drawn in chunks, each with seeds of its own below 2^31 (evaluation/sample.py); they
# are looked for at random, which takes as long as half of all are free.
SEEDS_OF_ANSWERS = 2**31


class Scale(Strict):
    """One model size, and what a run of it needs."""

    model: Model
    micro_batch: Count  # before replay adds rows: a device holds gpu_memory.rows_held
    evaluation_max_tokens: Tokens
    evaluation_batch: Batch
    hours_base: JobHoursOrZero
    hours_train: JobHours
    hours_evaluate: JobHours
    gpus: Devices
    sharding: Literal["none", "full"] = "none"
    memory_gb: Gigabytes = 4.0

    @model_validator(mode="after")
    def _shards_need_processes(self) -> "Scale":
        if self.sharding == "full" and self.gpus < 2:
            raise ValueError(f"sharding full divides among GPUs: give gpus 2 or more ({self.gpus})")
        return self

    @model_validator(mode="after")
    def _answers_have_positions(self) -> "Scale":
        if isinstance(self.model, FromScratchModel) and self.evaluation_max_tokens >= MAX_POSITIONS:
            raise ValueError(
                f"evaluation_max_tokens {self.evaluation_max_tokens} and a prompt are more than "
                f"the {MAX_POSITIONS} positions of a model from scratch; lower it"
            )
        return self


# --- grid ---


class GridBlock(Strict):
    """A block of cells: scales x methods x seeds x every combination of the varied settings.

    `vary` takes any setting of any part by its path. Blocks may overlap: a shared cell is trained
    once.
    """

    scales: list[Name] = Field(min_length=1)
    methods: list[Name] = Field(min_length=1)
    seeds: list[Seed] = Field(min_length=1)
    vary: dict[str, Annotated[list[Setting], Field(min_length=1)]] = {}

    @property
    def size(self) -> int:
        """How many points the product of the axes has."""
        axes = (self.scales, self.methods, self.seeds, *self.vary.values())
        return math.prod(map(len, axes))

    def variants(self) -> Iterator[dict[str, Setting]]:
        """Each combination of the varied settings, by path; one empty combination without any."""
        for values in product(*self.vary.values()):
            yield dict(zip(self.vary, values, strict=True))


class Training(Strict):
    """How every method of a study trains (the paper's Table 7)."""

    steps: Count
    rollouts_per_step: Count
    group_size: Rollouts
    mini_batch: Count
    max_prompt_tokens: Tokens
    expected_prompts: Rows | None = None
    max_completion_tokens: Tokens
    learning_rate: LearningRate
    weight_decay: WeightDecay
    # YAML and JSON have lists alone.
    adam_betas: Annotated[tuple[Beta, Beta], Field(strict=False)]
    gradient_clip: Bound
    temperature: Temperature
    precision: Literal["float32", "bfloat16"]
    gradient_checkpointing: bool
    rollout_engine: Literal["transformers", "vllm", "vllm_server"]

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

    every: Count
    keep: bool


class Evaluation(Strict):
    """How answers are sampled (paper, section "Evaluation")."""

    engine: Literal["transformers", "vllm"]
    temperature: Temperature
    top_p: TopP
    top_k: CountOrZero
    samples_per_wave: Samples
    first_wave_seed: Seed
    grade_timeout_seconds: Seconds


class Study(Strict):
    """A whole study file."""

    study: Name
    title: Line
    hub_cache: FileName | None = None
    scales: dict[Name, Scale] = Field(min_length=1)
    methods: dict[Name, Method] = Field(min_length=1)
    grid: list[GridBlock] = Field(min_length=1)
    task: AnyTask = DEFAULT_TASK
    rewards: Rewards = DEFAULT_REWARDS
    problems: TrainingProblems
    warm_start: WarmStart | None = None
    prompt_selection: PromptSelection | None = None
    benchmarks: Benchmarks
    training: Training
    checkpoints: Checkpoints
    evaluation: Evaluation
    claims: list[Claim] = []

    @model_validator(mode="after")
    def _grid_is_bounded(self) -> "Study":
        if (cells := sum(block.size for block in self.grid)) > MAX_CELLS:
            raise ValueError(f"grid: {cells} cells, more than {MAX_CELLS}: shorten its axes")
        return self

    @model_validator(mode="after")
    def _samples_differ(self) -> "Study":
        for name, benchmark in self.benchmarks.items():
            if self.evaluation.top_k == 1 and benchmark.k > 1:
                raise ValueError(
                    f"evaluation.top_k: 1 makes all answers to a problem equal, and "
                    f"benchmarks.{name}.k asks for {benchmark.k}: take k: 1, or top_k: 0"
                )
        return self

    @model_validator(mode="after")
    def _answers_have_seeds(self) -> "Study":
        for name, scale in self.scales.items():
            spacing = max(scale.evaluation_batch, self.evaluation.samples_per_wave)
            chunks = sum(self._chunks(scale, benchmark) for benchmark in self.benchmarks.values())
            if 2 * chunks * spacing > SEEDS_OF_ANSWERS:
                raise ValueError(
                    f"scales.{name}.evaluation_batch: {chunks} chunks of answers with {spacing} "
                    "seeds each are more than there are: lower evaluation_batch, or raise "
                    "evaluation.samples_per_wave"
                )
        return self

    def _chunks(self, scale: Scale, benchmark: Benchmark) -> int:
        """How many chunks `evaluation.sample.plan_chunks` makes of a benchmark."""
        wave = min(self.evaluation.samples_per_wave, benchmark.k)
        problems = min(benchmark.limit or benchmark.n_problems, benchmark.n_problems)
        size = max(1, scale.evaluation_batch // wave)
        return math.ceil(benchmark.k / wave) * math.ceil(problems / size)

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
        if "base" in self.methods:
            raise ValueError("methods: 'base' is the untrained model; choose another name")
        scratch = [n for n, s in self.scales.items() if isinstance(s.model, FromScratchModel)]
        if scratch and not isinstance(self.problems, ClockProblems):
            raise ValueError(
                f"scales.{scratch[0]}.model: source from_scratch needs problems with source clock"
            )
        if scratch and self.training.max_completion_tokens >= MAX_POSITIONS:
            raise ValueError(
                f"training.max_completion_tokens {self.training.max_completion_tokens}: "
                f"scales.{scratch[0]}.model has {MAX_POSITIONS} positions; lower it"
            )
        prompts = self.training.rollouts_per_step // self.training.group_size
        if self.prompt_selection and self.prompt_selection.keep < prompts:
            raise ValueError(f"prompt_selection.keep: a step needs {prompts} prompts")
        return self

    @model_validator(mode="after")
    def _rewards_exist(self) -> "Study":
        try:
            rewards_of(self.task, self.rewards)
        except ValueError as error:
            raise ValueError(f"rewards: {error}") from None
        return self

    @model_validator(mode="after")
    def _tasks_can_ask_the_clock(self) -> "Study":
        clock = [("problems", self.problems, self.task)]
        clock += [(f"benchmarks.{n}", b, b.task or self.task) for n, b in self.benchmarks.items()]
        for key, source, task in clock:
            if isinstance(source, ClockProblems | ClockBenchmark):
                try:
                    task.check_gold({"id": "0", "problem": "Start at 0.", "answer": "0"})
                except DataError as error:
                    raise ValueError(
                        f"{key}: source clock does not fit its task: {error}"
                    ) from None
        return self

    @model_validator(mode="after")
    def _methods_fit(self) -> "Study":
        """Every variant of the grid is a method, and fits the study's group size."""
        for block in self.grid:
            for name, variant in product(block.methods, block.variants()):
                try:
                    method = vary(self.methods[name], variant)
                    method.select.check(self.training.group_size)
                except ValueError as error:
                    raise ValueError(f"grid: method {name}, {error}") from None
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
