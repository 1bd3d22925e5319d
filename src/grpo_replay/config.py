"""A study, strictly typed: unknown keys are refused. config/README.md explains every key.

Importing this module must stay cheap: Snakemake reads it before every run.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from grpo_replay.errors import suggestion

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
NonNegativeInt = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
ChainLength = Annotated[int, Field(ge=1, le=26)]  # moves are named A to Z


class Strict(BaseModel):
    """Base of every section: frozen, and an unknown key is an error, not a silent default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ClockProblems(Strict):
    """Generated clock arithmetic (the nano study); the error rates shape the base model's worked
    solutions.
    """

    source: Literal["clock"]
    hours: Annotated[int, Field(ge=2, le=10)]
    max_step: PositiveInt
    steps: list[ChainLength] = Field(min_length=1)
    count: PositiveInt
    seed: int
    wrap_error: Fraction
    random_error: Fraction


class FileProblems(Strict):
    """Problems from a JSON Lines file (fields id, problem, answer, optionally solution) under
    `GRPO_REPLAY_DATA`.
    """

    source: Literal["file"]
    file: str
    limit: PositiveInt | None = None


class ClockBenchmark(Strict):
    """A generated benchmark: chains of one length."""

    source: Literal["clock"]
    title: str
    hours: Annotated[int, Field(ge=2, le=10)]
    max_step: PositiveInt
    steps: ChainLength
    n_problems: PositiveInt
    k: PositiveInt
    seed: int
    limit: None = None

    @property
    def chance(self) -> float:
        """Accuracy in percent of an answer that is drawn at random."""
        return 100.0 / self.hours


class FileBenchmark(Strict):
    """A benchmark file under `GRPO_REPLAY_DATA`; `n_problems` is checked on loading, `limit`
    keeps the first ones.
    """

    source: Literal["file"]
    title: str
    file: str
    n_problems: PositiveInt
    k: PositiveInt
    limit: PositiveInt | None = None

    @property
    def chance(self) -> float:
        """Free-form answers: a random one is never right."""
        return 0.0


TrainingProblems = Annotated[ClockProblems | FileProblems, Field(discriminator="source")]
Benchmark = Annotated[ClockBenchmark | FileBenchmark, Field(discriminator="source")]


class PromptSelection(Strict):
    """A first pass of the start model over candidate problems, keeping those whose group of
    rollouts is mixed.
    """

    candidates: PositiveInt
    rollouts: PositiveInt
    max_completion_tokens: PositiveInt
    keep: PositiveInt
    seed: int


class FromScratchModel(Strict):
    """A small Qwen3-architecture model that the workflow trains on worked solutions with errors."""

    source: Literal["from_scratch"]
    hidden_size: PositiveInt
    layers: PositiveInt
    heads: PositiveInt
    kv_heads: PositiveInt
    intermediate_size: PositiveInt
    updates: PositiveInt
    texts_per_update: PositiveInt
    learning_rate: PositiveFloat
    seed: int


class PretrainedModel(Strict):
    """A model from the Hub by pinned revision, or the folder of its name under
    `GRPO_REPLAY_MODELS`.
    """

    source: Literal["pretrained"]
    name: str
    revision: str


Model = Annotated[FromScratchModel | PretrainedModel, Field(discriminator="source")]


class WarmStart(Strict):
    """A few supervised steps in the boxed format; every method, and the base row, start from its
    result.
    """

    file: str
    steps: PositiveInt
    batch_size: PositiveInt
    learning_rate: PositiveFloat
    max_tokens: PositiveInt
    seed: int


class Scale(Strict):
    """One model size, and what a run of it needs."""

    model: Model
    micro_batch: PositiveInt
    evaluation_max_tokens: PositiveInt
    evaluation_batch: PositiveInt
    hours_base: Annotated[float, Field(ge=0)]
    hours_train: PositiveFloat
    hours_evaluate: PositiveFloat
    gpus: NonNegativeInt = 0


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
    seeds: list[int] = Field(min_length=1)


class Training(Strict):
    """The paper's Table 7, and the replay defaults of its section on the design space."""

    steps: PositiveInt
    rollouts_per_step: PositiveInt
    group_size: Annotated[int, Field(ge=2)]
    mini_batch: PositiveInt
    max_prompt_tokens: PositiveInt
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
    replay_warmup: NonNegativeInt
    buffer_capacity: PositiveInt
    checkpoint_every: PositiveInt
    keep_checkpoints: bool

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


class Evaluation(Strict):
    """How answers are sampled (paper, section "Evaluation")."""

    engine: Literal["transformers", "vllm"]
    temperature: PositiveFloat
    top_p: Annotated[float, Field(gt=0, le=1)]
    top_k: NonNegativeInt
    samples_per_wave: PositiveInt
    first_wave_seed: int
    grade_timeout_seconds: PositiveFloat


class Study(Strict):
    """A whole study file."""

    study: Name
    title: str
    scales: dict[Name, Scale] = Field(min_length=1)
    methods: dict[Name, Method] = Field(min_length=1)
    grid: list[GridBlock] = Field(min_length=1)
    problems: TrainingProblems
    warm_start: WarmStart | None = None
    prompt_selection: PromptSelection | None = None
    benchmarks: dict[Name, Benchmark] = Field(min_length=1)
    training: Training
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
        return self

    @model_validator(mode="after")
    def _micro_batches_divide(self) -> "Study":
        for name, scale in self.scales.items():
            rows = scale.micro_batch * max(scale.gpus, 1)
            if self.training.mini_batch % rows:
                raise ValueError(
                    f"scales.{name}: mini_batch {self.training.mini_batch} must be a multiple of "
                    f"micro_batch x processes = {rows}"
                )
        return self
