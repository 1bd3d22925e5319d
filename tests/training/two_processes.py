"""A short run whose rollouts do not depend on the process count."""

import sys
from pathlib import Path

from scripted import Script, cell_settings, make_probe, tiny_study

if __name__ == "__main__":
    model, run, processes = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    study = tiny_study(steps=4, replay_warmup=1)
    settings = {**cell_settings(study, "ours"), "processes": processes}
    settings["micro_batch"] //= processes
    probe = make_probe(settings, model, run, Script(keyed=True))
    probe.trainer.train()
    probe.trainer.save_model(str(run / "model"))
