"""The real workflow on the tiny study, run once a session."""

import pytest
from repository_copy import Workflow, copy_repository


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """The tiny study, run to its end."""
    workflow = copy_repository(tmp_path_factory.mktemp("workflow"))
    done = workflow.run()
    assert done.returncode == 0, done.stdout + done.stderr
    (workflow.folder / "first.log").write_text(done.stdout + done.stderr)
    return workflow


@pytest.fixture
def edited(finished: Workflow):
    """The finished study, whose study file a test may edit; it is put back afterwards."""
    text = finished.study.read_text()
    yield finished
    finished.study.write_text(text)
