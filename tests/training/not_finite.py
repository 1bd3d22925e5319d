"""A run whose buffer loses a number of one rollout after the first step; each process writes how it
ended. Arguments: model, folder.
"""

import math
import os
import sys
from pathlib import Path

from scripted import Script, cell_settings, make_probe, tiny_study
from sharded_cpu import allow_sharding, sharded

from grpo_replay.errors import TrainingError

if __name__ == "__main__":
    model, folder, process = Path(sys.argv[1]), Path(sys.argv[2]), os.environ["RANK"]
    settings = cell_settings(tiny_study(steps=4, replay_warmup=1), "ours")
    if os.environ["SHARDED"]:
        allow_sharding()
        settings = sharded(settings, 2)
    else:
        settings |= {"processes": 2, "micro_batch": settings["micro_batch"] // 2}
    probe = make_probe(settings, model, folder / process, Script(keyed=True))
    trainer = probe.trainer
    compose = trainer._split

    def spoilt(batch, step):
        replayed = [row for row in batch.rows if row.birth_step < step]
        if replayed:
            replayed[0].behaviour_logprobs[0] = math.nan
        return compose(batch, step)

    trainer._split = spoilt
    try:
        trainer.train()
    except TrainingError as error:
        (folder / f"error{process}.txt").write_text(str(error))
        sys.exit(1)
