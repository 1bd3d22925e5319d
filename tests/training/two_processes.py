"""A short run whose rollouts do not depend on the process count; its third step has none to learn
from. Arguments: model, folder, number of processes, and for a sharded run its precision.
"""

import json
import os
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from scripted import Probe, Script, cell_settings, make_probe, tiny_study
from sharded_cpu import allow_sharding, sharded
from trl.generation.vllm_generation import VLLMGeneration

METHOD = json.loads(os.environ.get("METHOD", "null"))  # instead of the tiny study's "ours"


def look_at_shards(probe: Probe, run: Path) -> None:
    """Write what a process holds, and the weights that TRL would hand to vLLM."""
    trainer = probe.trainer
    states = trainer.optimizer.state.values()
    held = {
        "weights": [p.to_local().numel() for p in trainer.model.parameters()],
        "moments": [s["exp_avg_sq"].to_local().numel() for s in states],
    }
    process = trainer.accelerator.process_index
    (run / f"held{process}.json").write_text(json.dumps(held))
    generation = object.__new__(VLLMGeneration)  # its engine is not needed here
    generation.model, generation.accelerator = trainer.model, trainer.accelerator
    generation._dist = trainer._dist
    weights: dict[str, torch.Tensor] = dict(generation._iter_named_params())
    if process == 0:
        save_file(weights, run / "for_vllm.safetensors")


if __name__ == "__main__":
    model, run, processes = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    precision = (sys.argv[4:] or ["float32"])[0]
    checkpointing = precision == "bfloat16"  # as where memory is short
    study = tiny_study(
        METHOD, steps=4, replay_warmup=1, precision=precision, gradient_checkpointing=checkpointing
    )
    settings = cell_settings(study, "probe" if METHOD else "ours")
    settings["micro_batch"] = 8 // processes  # two micro-batches an update
    settings["processes"] = processes
    if sys.argv[4:]:
        allow_sharding()
        settings = sharded(settings | {"micro_batch": 8}, processes)
    probe = make_probe(settings, model, run, Script(share=[0.5, 0.5, 0.0, 0.5], keyed=True))
    probe.trainer.train()
    probe.trainer.save_model(str(run / "model"))
    if sys.argv[4:]:
        look_at_shards(probe, run)
