"""Makes the nano study's base models: a tokenizer and a small Qwen3 model, trained from scratch.

No pretrained model is small enough for minutes on a CPU. This one has the architecture, chat
template and prompt of the real ones, and learns worked solutions that hold mistakes
(`clock_arithmetic`), so that reinforcement learning has something to repair.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn.functional import cross_entropy
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from grpo_replay.files import atomic_folder
from grpo_replay.models.config import MAX_POSITIONS
from grpo_replay.models.gradient import clip_gradient
from grpo_replay.models.load import check_finite
from grpo_replay.tasks.any_task import DEFAULT_TASK
from grpo_replay.tasks.clock import draw_problem, worked_solution
from grpo_replay.tasks.task import Task

if TYPE_CHECKING:
    from grpo_replay.models.config import FromScratchModel
    from grpo_replay.tasks.config import ClockProblems

END_OF_TURN = "<|im_end|>"
PAD = "<|endoftext|>"
SPECIAL_TOKENS = [PAD, "<|im_start|>", END_OF_TURN]
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
VOCABULARY_SIZE = 384  # 256 bytes, the special tokens, and the words of the prompt
TOKENIZER_TEXTS = 200
IGNORED = -100  # label of the tokens that the loss leaves out
WARM_UP_SHARE = 0.1
FIGURE_UPDATES = 20  # the reported loss is the mean over the last updates


def train_base_model(
    model: "FromScratchModel",
    problems: "ClockProblems",
    output: Path,
    task: Task = DEFAULT_TASK,
) -> dict[str, float]:
    """Train a tokenizer and a model, save both as the folder `output`, and return a few figures.

    The folder holds safetensors weights, tokenizer and generation config, and appears only when
    complete. Texts are drawn afresh for every update, from the training split alone. Returns
    `parameters`, `loss` (nats a completion token, mean of the last updates) and `seconds`.
    """
    start = time.perf_counter()
    rng = np.random.default_rng(model.seed)
    tokenizer = train_tokenizer([draw_text(problems, rng) for _ in range(TOKENIZER_TEXTS)], task)
    network = make_network(model, tokenizer)
    losses = fit(network, tokenizer, model, problems, rng, task)
    save_folder(network, tokenizer, output)
    return {
        "parameters": float(network.num_parameters()),
        "loss": float(np.mean(losses[-FIGURE_UPDATES:])),
        "seconds": time.perf_counter() - start,
    }


def draw_text(problems: "ClockProblems", rng: np.random.Generator) -> tuple[str, str]:
    """Return a random training problem and a worked solution of it, mistakes included."""
    problem = draw_problem(problems.steps, problems.hours, problems.max_step, "train", rng)
    return problem, worked_solution(problem, rng, problems.wrap_error, problems.random_error)


def train_tokenizer(
    texts: Sequence[tuple[str, str]], task: Task = DEFAULT_TASK
) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer in which each digit is a token, with a ChatML template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((_whole_text(task, *text) for text in texts), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END_OF_TURN,
        pad_token=PAD,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        padding_side="left",  # generation continues at the right end
    )


def _whole_text(task: Task, problem: str, solution: str) -> str:
    turns = task.messages({"problem": problem})
    roles = "\n".join(f"{turn['role']}\n{turn['content']}" for turn in turns)
    return f"{roles}\nassistant\n{solution}"


def make_network(model: "FromScratchModel", tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """Return a randomly initialised Qwen3 model of the given sizes, in float32."""
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=model.hidden_size,
        num_hidden_layers=model.layers,
        num_attention_heads=model.heads,
        num_key_value_heads=model.kv_heads,
        head_dim=model.hidden_size // model.heads,
        intermediate_size=model.intermediate_size,
        max_position_embeddings=MAX_POSITIONS,
        # The default of 0.02 suits wide models; at these widths nothing is learnt for minutes.
        initializer_range=model.hidden_size**-0.5,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    # Transformers initialises from torch's global generator: fork it, so that it is left as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(model.seed)
        network = Qwen3ForCausalLM(config)
    network.generation_config = GenerationConfig(
        do_sample=True, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    return network


def fit(
    network: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    model: "FromScratchModel",
    problems: "ClockProblems",
    rng: np.random.Generator,
    task: Task = DEFAULT_TASK,
) -> list[float]:
    """Train with AdamW and a one-cycle learning rate; return the loss of every update."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=model.learning_rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, model.learning_rate, total_steps=model.updates, pct_start=WARM_UP_SHARE
    )
    network.train()
    losses = []
    for _ in range(model.updates):
        texts = [draw_text(problems, rng) for _ in range(model.texts_per_update)]
        loss = completion_loss(network, *encode(tokenizer, texts, task))
        optimizer.zero_grad()
        loss.backward()
        clip_gradient(network, loss, 1.0, f"base model: update {len(losses) + 1}")
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def encode(
    tokenizer: PreTrainedTokenizerFast,
    texts: Sequence[tuple[str, str]],
    task: Task = DEFAULT_TASK,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token ids and labels [text, token], padded on the right.

    Labels are `IGNORED` on prompt and padding: the completion and its end of turn are learnt.
    """
    prompts = [
        tokenizer.apply_chat_template(
            task.messages({"problem": problem}), tokenize=False, add_generation_prompt=True
        )
        for problem, _ in texts
    ]
    solutions = [solution + END_OF_TURN for _, solution in texts]
    prompt_ids = tokenizer(prompts)["input_ids"]
    solution_ids = tokenizer(solutions)["input_ids"]
    width = max(len(p) + len(s) for p, s in zip(prompt_ids, solution_ids, strict=True))
    ids_BT = torch.full((len(texts), width), tokenizer.pad_token_id)
    labels_BT = torch.full((len(texts), width), IGNORED)
    for row, (prompt, solution) in enumerate(zip(prompt_ids, solution_ids, strict=True)):
        end = len(prompt) + len(solution)
        ids_BT[row, :end] = torch.tensor(prompt + solution)
        labels_BT[row, len(prompt) : end] = torch.tensor(solution)
    return ids_BT, labels_BT


def completion_loss(
    network: Qwen3ForCausalLM, ids_BT: torch.Tensor, labels_BT: torch.Tensor
) -> torch.Tensor:
    """Return the mean negative log-likelihood of the completion tokens, in nats.

    No attention mask is needed: padding is on the right, where causal attention cannot see it.
    Logits are made for the completion tokens alone, which are a third of the text.
    """
    hidden_BTH = network.model(input_ids=ids_BT[:, :-1]).last_hidden_state
    targets_BT = labels_BT[:, 1:]
    learnt_BT = targets_BT != IGNORED
    return cross_entropy(network.lm_head(hidden_BTH[learnt_BT]), targets_BT[learnt_BT])


def save_folder(
    network: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, output: Path
) -> None:
    """Write model and tokenizer, whole, finite, or not at all."""
    with atomic_folder(output) as unfinished:
        network.eval().save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
        check_finite(unfinished)
