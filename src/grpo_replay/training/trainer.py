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

from grpo_replay.methods.groups import score_groups
from grpo_replay.methods.loss import LossBatch
from grpo_replay.methods.method import Method
from grpo_replay.methods.replay import Batch, checked_batch
from grpo_replay.methods.rollout import Rollout, places_of_groups
from grpo_replay.training import finite
from grpo_replay.training.checkpoints import load_parts, save_parts
from grpo_replay.training.collate import collate, split_evenly
from grpo_replay.training.diagnostics import RatioStatistics, ratio_metrics
from grpo_replay.training.empty_updates import SkipEmptyUpdates
from grpo_replay.training.records import TrainingRecords
from grpo_replay.training.reference import frozen, rescore, with_reference
from grpo_replay.training.rollout_engine import seed_rollouts
from grpo_replay.training.round import Round, local_rollouts
from grpo_replay.training.scoring import Scoring
from grpo_replay.training.seeds import purpose_seed
from grpo_replay.training.sharding import save_whole
from grpo_replay.training.step_metrics import step_summary
from grpo_replay.training.step_rows import replay_rows, rollout_rows


class ReplayGRPOTrainer(GRPOTrainer):
    """GRPO whose round is made of parts: generate, reward, select, advantage, compose, split, loss.

    Args:
        method: a part on every axis.
        scoring: what completions are worth, and which are right.
        seed: the cell's; each purpose gets a generator of its own from it.
        records: where the main process writes what happened.
        *args, **kwargs: for `trl.GRPOTrainer`. The data set has the columns `prompt`, `answer`
            and `problem_id`.
    """

    def __init__(
        self,
        *args: Any,
        method: Method,
        scoring: Scoring,
        seed: int,
        records: TrainingRecords,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, reward_funcs=scoring.functions, **kwargs)
        self.scoring = scoring
        self.select = method.select.start(purpose_seed(seed, "select"))
        self.advantage = method.advantage.start(purpose_seed(seed, "advantage"))
        self.replay = method.replay.start(purpose_seed(seed, "draw"))
        self.loss = method.loss.start(purpose_seed(seed, "loss"))
        self.method = method  # what the engine must supply is said by the parts themselves
        self.reference = frozen(self) if method.loss.needs_reference else None
        self.parts = {n: getattr(self, n) for n in ("select", "advantage", "replay", "loss")}
        self.records = records
        self.watchers: Sequence[Any] = ()
        self._order = np.random.default_rng(purpose_seed(seed, "order"))
        self.updates_per_step = (
            self.args.steps_per_generation // self.args.gradient_accumulation_steps
        )
        self._micro_batches: list[dict[str, torch.Tensor]] = []
        self._round = Round(0)
        self._update_check = finite.UpdateCheck(self.loss)
        self.add_callback(SkipEmptyUpdates(self))

    @property
    def training_step_number(self) -> int:
        """The current step of Algorithm 1, counted from 1 (a step makes several optimizer
        updates).
        """
        return self._step // self.args.steps_per_generation + 1

    # --- one round: generate, reward, select, advantage, compose, split ---

    def _prepare_inputs(self, generation_batch: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        position = self._step % self.args.steps_per_generation
        if position == 0:
            self._micro_batches = self._next_round(generation_batch)
        accumulation = self.args.gradient_accumulation_steps
        if self.method.loss.needs_reference and position % accumulation == 0:
            update = self._micro_batches[position : position + accumulation]
            rescore(self, update, self._round.batch.rows)
        return self._micro_batches[position]

    def _next_round(self, generation_batch: list[dict[str, Any]]) -> list[dict[str, torch.Tensor]]:
        step = self.training_step_number
        self._round = Round(step)
        self._ratios = RatioStatistics(*self.method.loss.clip_range)
        output = self._generate_and_score_completions(generation_batch)
        self._round.fresh = gather_object(self._rollouts(output))
        finite.check_rollouts(self._round.fresh, step)
        self._round.scored = time.perf_counter()
        kept = [r for r in self._round.fresh if self._trains_on(r)]
        self._round.batch = checked_batch(self.replay.next_batch(kept, step), self.replay, step)
        self._record_rollouts()
        return self._split(self._round.batch, step)

    def _trains_on(self, rollout: Rollout) -> bool:
        return rollout.scored if self.method.loss.keeps_zero_variance else rollout.has_signal

    def _generate(self, prompts: list) -> tuple:
        started = time.perf_counter()
        if self.use_vllm:
            seed_rollouts(self.vllm_generation, self.args.seed, self.training_step_number)
        with finite.diverged_sampling(self.training_step_number):
            result = super()._generate(prompts)
        self._round.generation_seconds = time.perf_counter() - started
        return result

    def _calculate_rewards(
        self, inputs: list, prompts: list, completions: list, completion_ids_list: list
    ) -> torch.Tensor:
        rows = self.scoring.with_columns(inputs)
        rewards = super()._calculate_rewards(rows, prompts, completions, completion_ids_list)
        self.scoring.check(self._round.step)
        # Kept because TRL's own advantages (sample std, 1e-4, unscored as 0) are not the paper's.
        values_NF = rewards.double().cpu().numpy()  # of all processes
        self._round.rewards = self.scoring.totals(values_NF)
        self._round.reward_means = self.scoring.means(values_NF)
        self._round.correct = self.scoring.correct(inputs, completions)
        self._round.problem_ids = [row["problem_id"] for row in inputs]
        return rewards

    def _rollouts(self, output: dict[str, torch.Tensor]) -> list[Rollout]:
        size = self.num_generations
        groups = score_groups(
            self._round.rewards, size, self.select, self.advantage, self._round.step
        )
        first = self.accelerator.process_index * len(output["completion_ids"])
        behaviour = self._behaviour_logprobs(output)
        ends = self.eos_token_ids
        own = local_rollouts(self._round, groups, output, behaviour, first, size, ends)
        return with_reference(own, self, self.reference, output) if self.reference else own

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
        units = places_of_groups(batch.rows) if self.method.loss.whole_groups else None
        order = self._order.permutation(len(batch.rows if units is None else units))
        tensors, self._tokens_by_update = [], []
        for pieces in split_evenly(order, self.updates_per_step, accumulation * processes, units):
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

    def _compute_loss(
        self, model: torch.nn.Module, inputs: dict[str, torch.Tensor]
    ) -> torch.Tensor:
        logprobs, entropies, _ = self._get_per_token_logps_and_entropies(
            model,
            torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1),
            torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1),
            inputs["completion_ids"].size(1),
            compute_entropy=True,
        )
        # A sum over this process's tokens becomes the mean over those of the whole update.
        share = self.current_gradient_accumulation_steps / self.args.steps_per_generation
        tokens = inputs["num_items_in_batch"].clamp(min=1.0) / self.accelerator.num_processes
        stored, ratio = inputs["old_per_token_logps"], self.method.loss.uses_ratio
        loss = self.loss.of(
            LossBatch(
                logprobs=finite.bound_log_ratio(logprobs, stored) if ratio else logprobs,
                behaviour_logprobs=stored,
                advantages=inputs["advantages"].unsqueeze(1),
                mask=inputs["completion_mask"],
                tokens=tokens * share,
            )
        )
        finite.check_loss(loss, self.loss, self._round.step)
        self._update_check.observe(loss, inputs, logprobs.detach())
        self._ratios.observe(inputs, logprobs.detach(), entropies.detach())
        return loss

    def _get_grad_norm(self, *args: Any, **kwargs: Any) -> torch.Tensor | float:
        norm = super()._get_grad_norm(*args, **kwargs)  # TRL's last call before the optimizer
        step, update = divmod(self.state.global_step, self.updates_per_step)
        self._update_check.finish(norm, self._round.batch.rows, step + 1, update + 1)
        return norm

    def empty_update(self) -> bool:
        """Whether the update that is about to be made has no row to learn from."""
        update = self.state.global_step % self.updates_per_step
        return self._tokens_by_update[update] == 0

    # --- records ---

    def _record_rollouts(self) -> None:
        fresh = self._round.fresh
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
        step = self._step // self.args.steps_per_generation
        told = [finite.told(part, step) for part in self.parts.values()]
        if self.accelerator.is_main_process:
            self.records.replay.append(replay_rows(self._round.batch, step, log_ratios))
            skipped = sum(tokens == 0 for tokens in self._tokens_by_update)
            summary = step_summary(step, self._round, logs, skipped)
            record = {k: v for part in (summary, *told, ratios) for k, v in part.items()}
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
            step = self._step // self.args.steps_per_generation
            parts = {axis: part.state_dict() for axis, part in self.parts.items()}
            folder = Path(self.args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}")
            values = {"step": step, "order": self._order.bit_generator.state}
            save_parts(folder, parts, values, self.records.paths)
        self.accelerator.wait_for_everyone()

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        finite.check_state(self.model, self.optimizer, checkpoint, "Remove it, and run again")
        states, values = load_parts(Path(checkpoint))
        for axis, part in self.parts.items():
            part.load_state_dict(states[axis])
        self._order.bit_generator.state = values["order"]
        self._step = values["step"] * self.args.steps_per_generation
