"""What the replay machinery adds to a training step of plain TRL, in one process, turn by turn.

Both trainers compute old log-probabilities, see the same scripted rollouts (every group mixed) and
train on the same tokens; ours also keeps a buffer, draws nothing (r = 0), and measures its ratios.

    python benchmarks/bench_trainer.py
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from transformers.trainer_callback import PrinterCallback
from trl import GRPOTrainer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "training"))
from scripted import TINY, Script, cell_settings, tiny_study

from grpo_replay.methods.method import with_setting
from grpo_replay.models.from_scratch import make_network, save_folder, train_tokenizer
from grpo_replay.study.file import load_study
from grpo_replay.tasks.math.task import Math, boxed_answer_reward
from grpo_replay.tasks.problems import make_problems
from grpo_replay.training.arguments import trainer_arguments
from grpo_replay.training.records import TrainingRecords
from grpo_replay.training.run_training import build_trainer, training_set
from grpo_replay.training.training_run import TrainingRun

REPETITIONS, STEPS = 5, 6
SIZES = SimpleNamespace(
    hidden_size=384, layers=6, heads=6, kv_heads=2, intermediate_size=1024, seed=0
)


class MixedScript(Script):
    """Every second rollout is right, so every group is mixed; completions of 64 tokens."""

    def _answer(self, message: str, share: float, generator: torch.Generator) -> str:
        self.turn = getattr(self, "turn", 0) + 1
        digits = "".join(map(str, torch.randint(0, 10, (56,), generator=generator).tolist()))
        from scripted import right_answer

        return f"{digits} \\boxed{{{right_answer(message) if self.turn % 2 else 'x'}}}<|im_end|>"


class Clock(TrainerCallback):
    """CPU seconds of every optimizer update's step: one thread, so other work disturbs little."""

    def __init__(self) -> None:
        self.marks: list[float] = []

    def on_step_end(self, args, state, control, **kwargs) -> None:  # noqa: D102
        self.marks.append(time.process_time())


def run(trainer: GRPOTrainer) -> float:
    """Median seconds of a training step, the first left out."""
    clock = Clock()
    trainer.add_callback(clock)
    trainer.train()
    ends = clock.marks[1::2]
    return statistics.median(b - a for a, b in zip(ends, ends[1:], strict=False))


def main() -> None:
    """Print medians, and ratios turn by turn."""
    torch.set_num_threads(1)
    study = tiny_study(steps=STEPS, replay_warmup=1)
    ours_alone = with_setting(study.methods["ours"], "replay.ratio", 0.0)
    settings = cell_settings(study.model_copy(update={"methods": {"ours": ours_alone}}), "ours")
    ours, plain = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, problems = folder / "model", folder / "problems.jsonl"
        tokenizer = train_tokenizer([("Start at 7 and go +2", "7+2=9 \\boxed{9}")])
        save_folder(make_network(SIZES, tokenizer), tokenizer, model)
        make_problems(load_study(TINY).problems, problems)
        for turn in range(REPETITIONS):
            records = TrainingRecords(folder / f"ours{turn}")
            trainer = build_trainer(
                settings, model, problems, folder / "o", records, rollout_func=MixedScript()
            )
            ours.append(run(trainer))
            tokenizer = AutoTokenizer.from_pretrained(model)
            trl = GRPOTrainer(
                model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
                reward_funcs=boxed_answer_reward,
                args=trainer_arguments(TrainingRun.of(settings), folder / "p"),
                train_dataset=training_set(problems, tokenizer, study.training, Math(), seed=42),
                processing_class=tokenizer,
                rollout_func=MixedScript(),
            )
            trl.remove_callback(PrinterCallback)
            plain.append(run(trl))
            print(f"turn {turn}: ours {ours[-1]:.3f} s, plain {plain[-1]:.3f} s a step")
    ratio = statistics.median(a / b for a, b in zip(ours, plain, strict=True))
    print(f"median ratio ours / plain: {ratio:.4f} (at most 1.02)")


if __name__ == "__main__":
    main()
