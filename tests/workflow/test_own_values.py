"""What people type and put into their own files, through a real Snakemake."""

from pathlib import Path

from repository_copy import copy_repository


def test_settings_are_what_was_typed_also_in_jobs(tmp_path: Path) -> None:
    """08 is the number 8 to Snakemake, and `only=` nothing at all."""
    workflow = copy_repository(tmp_path)
    target = "08/tiny/data/problems.jsonl"
    done = workflow.run(target, "results=08", "only=", "copy_models=true")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / target).is_file() and not (tmp_path / "8").exists()
