"""What people type and put into their own files, through a real Snakemake."""

import json
import shutil
from pathlib import Path

import yaml
from repository_copy import copy_repository

from grpo_replay.models.local import count_parameters


def test_settings_are_what_was_typed_also_in_jobs(tmp_path: Path) -> None:
    """08 is the number 8 to Snakemake, and `only=` nothing at all."""
    workflow = copy_repository(tmp_path)
    target = "08/tiny/data/problems.jsonl"
    done = workflow.run(target, "results=08", "only=", "copy_models=true")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / target).is_file() and not (tmp_path / "8").exists()


def test_own_files_and_models_that_do_not_suit_are_all_named_before_a_run(
    tiny_model: Path, tmp_path: Path
) -> None:
    """One start tells each with its key; blank answers that `max_dropped` allows are no mistake."""
    model = Path(shutil.copytree(tiny_model, tmp_path / "own" / "tiny"))
    (model / "chat_template.jinja").write_text(
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    )
    rows = [{"id": str(n), "problem": "?", "answer": "" if n else "1"} for n in range(3)]
    wrong = {"id": "4", "problem": "?", "answer": "\ud800"}
    for name, content in (("blank", rows), ("wrong", [rows[0], wrong])):
        lines = [json.dumps(row) + "\n" for row in content]
        (tmp_path / "own" / f"{name}.jsonl").write_text("".join(lines))
    workflow = copy_repository(tmp_path / "copy")
    study = yaml.safe_load(workflow.study.read_text())
    study["scales"]["s"]["model"] = {
        "source": "pretrained", "name": "org/tiny", "revision": "0" * 40,
        "parameters": count_parameters(model),
    }  # fmt: skip
    study["problems"] = {"source": "file", "file": "blank.jsonl", "max_dropped": 2}
    study["benchmarks"]["own"] = {
        "source": "file", "title": "Own $$ | one", "file": "wrong.jsonl", "n_problems": 2, "k": 4
    }  # fmt: skip
    workflow.study.write_text(yaml.safe_dump(study))
    folders = dict.fromkeys(("GRPO_REPLAY_MODELS", "GRPO_REPLAY_DATA"), str(tmp_path / "own"))
    done = workflow.run("-n", **folders)
    told = done.stdout + done.stderr
    assert done.returncode != 0 and "Traceback" not in told
    assert "tiny.yaml: scales.s.model: org/tiny: its chat template does not take" in told
    assert "no system role" in told
    assert f"benchmarks.own: {tmp_path}/own/wrong.jsonl, line 2: field 'answer' cannot be" in told
    assert "blank.jsonl" not in told
