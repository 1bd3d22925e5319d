"""The Kubernetes profile, as far as a dry run goes."""

from pathlib import Path

from repository_copy import copy_repository


def test_the_kubernetes_profile_plans_the_study(tmp_path: Path) -> None:
    workflow = copy_repository(tmp_path / "copy")
    workflow.study.write_text(workflow.study.read_text().replace("gpus: 0", "gpus: 1"))
    prefix = ("--default-storage-prefix", str(tmp_path / "storage"))
    shown = ("-n", "--quiet", "reason")  # the default profile leaves the jobs out
    done = workflow.run(*shown, "--profile", "profiles/kubernetes", *prefix)
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = (done.stdout + done.stderr).split("rule train_policy:")
    assert len(jobs) == 1 + 5
    for job in jobs[1:]:
        assert str(tmp_path / "storage" / "results/tiny/cells") in job
        assert "gpu=1" in job and "gpu_manufacturer=nvidia" in job and "scale=0" in job
        assert "mem_mb=4000" in job and "runtime=11" in job
