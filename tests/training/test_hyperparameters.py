"""What Table 7 says of every study is what the trainer gets."""

from pathlib import Path

from grpo_replay.reporting.paper.hyperparameters import FIXED
from grpo_replay.study.cells import expand, training_settings
from grpo_replay.study.file import load_study
from grpo_replay.training.arguments import trainer_arguments
from grpo_replay.training.training_run import TrainingRun

NANO = Path(__file__).parents[2] / "config" / "studies" / "nano.yaml"


def test_fixed_hyperparameters_are_those_of_the_trainer(tmp_path):
    study = load_study(NANO)
    cell = expand(study)["s/grpo-seed42"]
    arguments = trainer_arguments(TrainingRun.of(training_settings(study, cell)), tmp_path)
    assert arguments.beta == float(FIXED["kl_beta"])
    assert arguments.warmup_steps == float(FIXED["learning_rate_warmup"])
    assert arguments.lr_scheduler_type == "constant" and arguments.optim == "adamw_torch"
