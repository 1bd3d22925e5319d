"""In training, too, an answer that any of a model's end tokens closes is finished."""

import json
import shutil
from pathlib import Path

from scripted import Script, cell_settings, make_probe, tiny_study

from grpo_replay.training.trainer import ReplayGRPOTrainer


class TwoEnds(Script):
    """Every other answer ends by `other` instead of the end of turn, and one in four by none."""

    other = -1

    def __call__(self, prompts: list, trainer: ReplayGRPOTrainer) -> dict[str, list]:
        drawn = super().__call__(prompts, trainer)
        for position, ids in enumerate(drawn["completion_ids"]):
            if position % 4 == 3:
                ids.pop()
            elif position % 2:
                ids[-1] = self.other
        return drawn


def test_both_end_tokens_finish_an_answer(tiny_model: Path, tmp_path: Path) -> None:
    model = shutil.copytree(tiny_model, tmp_path / "model")
    path = model / "generation_config.json"
    content = json.loads(path.read_text())
    script = TwoEnds()
    script.other = 100
    assert content["eos_token_id"] != script.other
    path.write_text(json.dumps({**content, "eos_token_id": [script.other]}))
    settings = cell_settings(tiny_study(steps=1, replay_warmup=1), "grpo")
    probe = make_probe(settings, model, tmp_path / "run", script)
    probe.trainer.train()
    truncated = probe.records.rollouts.table().truncated
    assert len(truncated) == 32
    assert truncated.mean() == 0.25
    assert probe.records.metrics.rows()[0]["completions/truncated_share"] == 0.25
