"""What the trainer is told: the paper's Table 7 in TRL's names."""

import os
from pathlib import Path

import torch
from trl import GRPOConfig

from grpo_replay.study.config import ROLLOUT_ENGINE_SHARE
from grpo_replay.training.rollout_server import server_address
from grpo_replay.training.sharding import gathering_precision, sharding_arguments
from grpo_replay.training.training_run import TrainingRun


def trainer_arguments(job: TrainingRun, run: Path) -> GRPOConfig:
    """TRL's arguments for the paper's Table 7; the loss is the method's own part."""
    training, sharding = job.training, job.sharding
    rows = job.micro_batch * job.processes
    updates = training.updates_per_step
    on_server = training.rollout_engine == "vllm_server"
    on_cpu = not torch.cuda.is_available()
    if on_cpu:  # several processes would call it cpu:0, where torch restores no optimizer
        os.environ["ACCELERATE_TORCH_DEVICE"] = "cpu"
    arguments = GRPOConfig(
        output_dir=str(run),
        seed=job.cell.seed,
        max_steps=training.steps * updates,
        reward_weights=[reward.weight for reward in job.rewards],
        num_generations=training.group_size,
        per_device_train_batch_size=job.micro_batch,
        gradient_accumulation_steps=training.mini_batch // rows,
        steps_per_generation=training.rollouts_per_step // rows,
        max_completion_length=training.max_completion_tokens,
        temperature=training.temperature,
        top_p=1.0,
        top_k=0,
        loss_type="dapo",
        beta=0.0,
        learning_rate=training.learning_rate,
        lr_scheduler_type="constant",
        warmup_steps=0,
        optim="adamw_torch",
        weight_decay=training.weight_decay,
        adam_beta1=training.adam_betas[0],
        adam_beta2=training.adam_betas[1],
        max_grad_norm=training.gradient_clip,
        bf16=training.precision == "bfloat16",
        gradient_checkpointing=training.gradient_checkpointing,
        use_vllm=training.rollout_engine != "transformers",
        vllm_mode="server" if on_server else "colocate",
        vllm_server_base_url=server_address() if on_server else None,
        vllm_gpu_memory_utilization=ROLLOUT_ENGINE_SHARE,
        vllm_max_model_length=training.max_prompt_tokens + training.max_completion_tokens,
        # The paper uses the clip alone; the mismatch of the two engines is recorded.
        vllm_importance_sampling_correction=False,
        use_cpu=on_cpu,
        save_strategy="steps",
        save_total_limit=2,
        shuffle_dataset=False,
        logging_steps=updates,
        report_to=[],
        disable_tqdm=True,
        **sharding_arguments(sharding),
    )
    if sharding != "none":  # accelerate's name for it is none of TRL's arguments
        policy = gathering_precision(training.precision)
        arguments.fsdp_plugin_args["mixed_precision_policy"] = policy
    return arguments
