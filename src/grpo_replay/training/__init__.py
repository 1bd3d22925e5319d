"""Base models, GRPO training with replay, and what each training run leaves behind."""
