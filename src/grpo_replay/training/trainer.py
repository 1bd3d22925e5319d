"""TRL's GRPO trainer with rollout-level replay: one round of Algorithm 1 a training step.

TRL generates, scores and differentiates. This class replaces what happens between: advantages as
the paper has them, zero-variance groups dropped, the batch composed from survivors and buffer, and
split into the step's updates.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from trl import GRPOTrainer

from grpo_replay.methods.advantages import group_advantages
from grpo_replay.methods.buffer import RolloutBuffer
from grpo_replay.methods.composition import Batch, ReplayMethod, compose
from grpo_replay.methods.priorities import Sampler
from grpo_replay.methods.rollout import Rollout
from grpo_replay.training import finite
from grpo_replay.training.checkpoints import load_replay_state, save_replay_state
from grpo_replay.training.collate import collate, split_evenly
from grpo_replay.training.diagnostics import RatioStatistics, ratio_metrics
from grpo_replay.training.empty_updates import SkipEmptyUpdates
from grpo_replay.training.records import TrainingRecords
from grpo_replay.training.rollout_engine import seed_rollouts
from grpo_replay.training.sharding import save_whole
from grpo_replay.training.step_rows import replay_rows, rollout_rows, step_summary


class ReplayGRPOTrainer(GRPOTrainer):
    """GRPO with experience replay.

    Args:
        method: composition, unit, ratio and warm-up of the replay.
        buffer: stores survivors; every process holds the same one.
        sampler: draws units; None for plain GRPO.
        order_seed: seeds the order in which a step's rows are spread over its updates.
        advantage_epsilon: added to sigma_g.
        records: where the main process writes what happened.
        *args, **kwargs: for `trl.GRPOTrainer`. The data set has the columns `prompt`, `answer`
            and `problem_id`.
    """

    def __init__(
        self,
        *args: Any,
        method: ReplayMethod,
        buffer: RolloutBuffer,
        sampler: Sampler | None,
        order_seed: int,
        advantage_epsilon: float,
        records: TrainingRecords,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.method = method
        self.buffer = buffer
        self.sampler = sampler
        self.records = records
        self.watchers: Sequence[Any] = ()
        self.advantage_epsilon = advantage_epsilon
        self._order = np.random.default_rng(order_seed)
        self.updates_per_step = (
            self.args.steps_per_generation // self.args.gradient_accumulation_steps
        )
        self._micro_batches: list[dict[str, torch.Tensor]] = []
        self._round: dict[str, Any] = {}
        self._update_check = finite.UpdateCheck()
        self._stored_logprobs: torch.Tensor | None = None  # of the micro-batch in the loss
        self.add_callback(SkipEmptyUpdates(self))

    @property
    def training_step_number(self) -> int:
        """The current step of Algorithm 1, counted from 1 (a step makes several optimizer
        updates).
        """
        return self._step // self.args.steps_per_generation + 1

    # --- one round: generate, score, compose, split ---

    def _prepare_inputs(self, generation_batch: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        position = self._step % self.args.steps_per_generation
        if position == 0:
            self._micro_batches = self._next_round(generation_batch)
        return self._micro_batches[position]

    def _next_round(self, generation_batch: list[dict[str, Any]]) -> list[dict[str, torch.Tensor]]:
        step = self.training_step_number
        self._round = {"started": time.perf_counter()}
        self._ratios = RatioStatistics(self.epsilon_low, self.epsilon_high)
        output = self._generate_and_score_completions(generation_batch)
        fresh = gather_object(self._local_rollouts(output, step))
        finite.check_rollouts(fresh, step)
        self._round["scored"] = time.perf_counter()
        survivors = [rollout for rollout in fresh if rollout.carries_signal]
        before = self.buffer.evict(step)
        batch = compose(survivors, self.buffer, step, self.method, self.sampler)
        if self.sampler:
            self.buffer.add(survivors)
        after = self.buffer.evict(step)
        evicted = {"age": before.age + after.age, "capacity": before.capacity + after.capacity}
        self._round |= {"fresh": fresh, "batch": batch, "evicted": evicted}
        self._record_rollouts(fresh)
        return self._split(batch, step)

    def _generate(self, prompts: list) -> tuple:
        started = time.perf_counter()
        if self.use_vllm:
            seed_rollouts(self.vllm_generation, self.args.seed, self.training_step_number)
        with finite.diverged_sampling(self.training_step_number):
            result = super()._generate(prompts)
        self._round["generation_seconds"] = time.perf_counter() - started
        return result

    def _calculate_rewards(
        self, inputs: list, prompts: list, completions: list, completion_ids_list: list
    ) -> torch.Tensor:
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        # Kept because TRL's own advantages (sample std, 1e-4, unscored as 0) are not the paper's.
        self._round["rewards"] = rewards[:, 0].double().cpu().numpy()  # of all processes
        self._round["problem_ids"] = [row["problem_id"] for row in inputs]
        return rewards

    def _local_rollouts(self, output: dict[str, torch.Tensor], step: int) -> list[Rollout]:
        rewards = self._round["rewards"]
        advantages, means, stds = group_advantages(
            rewards, self.num_generations, self.advantage_epsilon
        )
        lengths = output["completion_mask"].sum(dim=1).tolist()
        first = self.accelerator.process_index * len(lengths)
        behaviour = self._behaviour_logprobs(output).float().cpu().numpy()
        sampled = output.get("sampling_per_token_logps")
        completions = output["completion_ids"].cpu().numpy().astype(np.int32)
        prompts = output["prompt_ids"].cpu().numpy().astype(np.int32)
        prompt_mask = output["prompt_mask"].bool().cpu().numpy()
        rollouts = []
        for row, length in enumerate(lengths):
            index = first + row
            group = f"{step}-{index // self.num_generations}"
            rollouts.append(
                Rollout(
                    rollout_id=f"{group}-{index % self.num_generations}",
                    group_id=group,
                    problem_id=self._round["problem_ids"][row],
                    prompt_ids=prompts[row][prompt_mask[row]],
                    completion_ids=completions[row, :length].copy(),
                    behavior_logprobs=behaviour[row, :length].copy(),
                    sampler_logprobs=None
                    if sampled is None
                    else sampled[row, :length].float().cpu().numpy().copy(),
                    advantage=float(advantages[index]),
                    reward=float(rewards[index]),
                    group_mean=float(means[index]),
                    group_std=float(stds[index]),
                    birth_step=step,
                    truncated=int(completions[row, length - 1]) not in self.eos_token_ids,
                )
            )
        return rollouts

    @torch.no_grad()
    def _behaviour_logprobs(self, output: dict[str, torch.Tensor]) -> torch.Tensor:
        """Log-probabilities under the birth policy, (rows, tokens); TRL leaves them out where a
        step is one update.
        """
        if "old_per_token_logps" in output:
            return output["old_per_token_logps"]
        logprobs, _, _ = self._get_per_token_logps_and_entropies(
            self.model,
            torch.cat([output["prompt_ids"], output["completion_ids"]], dim=1),
            torch.cat([output["prompt_mask"], output["completion_mask"]], dim=1),
            output["completion_ids"].size(1),
            batch_size=self.args.per_device_train_batch_size,
        )
        return logprobs

    def _split(self, batch: Batch, step: int) -> list[dict[str, torch.Tensor]]:
        """This process's micro-batches of the step, those of its first update first."""
        processes = self.accelerator.num_processes
        accumulation = self.args.gradient_accumulation_steps
        order = self._order.permutation(len(batch.rows))
        tensors, self._tokens_by_update = [], []
        for pieces in split_evenly(order, self.updates_per_step, accumulation * processes):
            tokens = sum(len(batch.rows[i].completion_ids) for piece in pieces for i in piece)
            self._tokens_by_update.append(tokens)
            for first in range(0, len(pieces), processes):
                width = max(1, *map(len, pieces[first : first + processes]))
                own = pieces[first + self.accelerator.process_index]
                # TRL divides by num_items_in_batch / updates: make that this mini-batch's tokens.
                tensors.append(
                    collate(
                        batch.rows,
                        own.tolist(),
                        width,
                        step,
                        tokens * self.updates_per_step,
                        self._tokenizer.pad_token_id,
                        self.accelerator.device,
                    )
                )
        return tensors

    # --- loss and what is seen of it ---

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> tuple:
        result = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        self._last_logprobs, self._last_entropies = result[0].detach(), result[1]
        if self._stored_logprobs is None:
            return result
        return (finite.bound_log_ratio(result[0], self._stored_logprobs), *result[1:])

    def _compute_loss(
        self, model: torch.nn.Module, inputs: dict[str, torch.Tensor]
    ) -> torch.Tensor:
        self._stored_logprobs = inputs["old_per_token_logps"]
        loss = super()._compute_loss(model, inputs)
        self._stored_logprobs = None
        self._update_check.observe(loss, inputs, self._last_logprobs)
        self._ratios.observe(inputs, self._last_logprobs, self._last_entropies.detach())
        return loss

    def _get_grad_norm(self, *args: Any, **kwargs: Any) -> torch.Tensor | float:
        norm = super()._get_grad_norm(*args, **kwargs)  # TRL's last call before the optimizer
        step, update = divmod(self.state.global_step, self.updates_per_step)
        self._update_check.finish(norm, self._round["batch"].rows, step + 1, update + 1)
        return norm

    def empty_update(self) -> bool:
        """Whether the update that is about to be made has no row to learn from."""
        update = self.state.global_step % self.updates_per_step
        return self._tokens_by_update[update] == 0

    # --- records ---

    def _record_rollouts(self, fresh: list[Rollout]) -> None:
        if self.accelerator.is_main_process:
            texts = self._tokenizer.batch_decode([r.completion_ids for r in fresh])
            self.records.rollouts.append(rollout_rows(fresh, texts))

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Let TRL log, then write the finished step's record (TRL merges its own means into
        `logs`).
        """
        super().log(logs, start_time)
        if "loss" not in logs:  # the summary at the end of training
            return
        ratios = ratio_metrics(gather_object([self._ratios.sums]))
        log_ratios = dict(gather_object([*self._ratios.log_ratios.items()]))
        if self.accelerator.is_main_process:
            step = self._step // self.args.steps_per_generation
            self.records.replay.append(replay_rows(self._round["batch"], step, log_ratios))
            skipped = sum(tokens == 0 for tokens in self._tokens_by_update)
            summary = step_summary(step, self._round, logs, skipped)
            record = {**summary, **self.buffer.metrics(step), **ratios}
            self.records.metrics.append([record])
            for watcher in self.watchers:
                watcher.step(record)

    # --- resume, and the result ---

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Write the whole model, from all processes (a checkpoint, an internal call, has parts)."""
        finite.check_state(self.model, self.optimizer, f"{output_dir}: not written")
        if self.is_fsdp_enabled and not _internal_call:
            save_whole(self, output_dir or self.args.output_dir)
        else:
            super().save_model(output_dir, _internal_call)

    def _save_checkpoint(self, model: torch.nn.Module, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        self.accelerator.wait_for_everyone()  # each process has written its generators' state
        if self.accelerator.is_main_process:
            buffer = self.buffer.state_dict()
            values = {
                "step": self._step // self.args.steps_per_generation,
                "buffer": buffer["values"],
                "sampler": self.sampler.state_dict() if self.sampler else None,
                "order": self._order.bit_generator.state,
            }
            folder = Path(self.args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}")
            save_replay_state(folder, buffer["arrays"], values, self.records.paths)
        self.accelerator.wait_for_everyone()

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        finite.check_state(self.model, self.optimizer, checkpoint, "Remove it, and run again")
        arrays, values = load_replay_state(Path(checkpoint))
        self.buffer.load_state_dict({"arrays": arrays, "values": values["buffer"]})
        if self.sampler:
            self.sampler.load_state_dict(values["sampler"])
        self._order.bit_generator.state = values["order"]
        self._step = values["step"] * self.args.steps_per_generation
