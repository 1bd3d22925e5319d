"""Write a cell's resolved settings."""

from pathlib import Path

from grpo_replay.console import job
from grpo_replay.files import write_json

with job(snakemake.log[0], snakemake.wildcards.cell):
    write_json(Path(snakemake.output.cell), snakemake.params.resolved)
