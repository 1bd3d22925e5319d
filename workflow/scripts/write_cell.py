"""Write a cell's resolved settings."""

import json
from pathlib import Path

from grpo_replay.console import job

with job(snakemake.log[0], snakemake.wildcards.cell):
    text = json.dumps(snakemake.params.resolved, indent=2, sort_keys=True) + "\n"
    Path(snakemake.output.cell).write_text(text, encoding="utf-8")
