"""MLflow's server with PostgreSQL: eight trainings at once lose nothing, and sync adds nothing.

Runs with `make test-ui` where PostgreSQL and psycopg2 are installed (Debian: postgresql,
python3-psycopg2).
"""

import importlib.util
import multiprocessing
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from servers import MlflowServer, free_port
from test_live import log_one_of_eight
from tracked_cells import CELLS, STUDY, make_records, runs_of, steps_of, write_records

from grpo_replay.tracking.sync import sync_study

pytestmark = pytest.mark.ui
DEBIAN = Path("/usr/lib/python3/dist-packages/psycopg2")
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@pytest.fixture
def driver(tmp_path: Path) -> dict[str, str]:
    """Variables with which a server finds psycopg2: Debian's own where the environment has none."""
    if importlib.util.find_spec("psycopg2"):
        return {}
    library = f"_psycopg{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not (DEBIAN / library).is_file():
        pytest.skip("no psycopg2 for this Python (Debian: python3-psycopg2; or psycopg2-binary)")
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "psycopg2").symlink_to(DEBIAN)  # alone, without its neighbours
    return {"PYTHONPATH": str(tmp_path / "driver")}


@pytest.fixture
def database(tmp_path_factory: pytest.TempPathFactory):
    """The URI of a new PostgreSQL on 127.0.0.1, run by the user postgres where we are root."""
    if not PROGRAMS:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    folder = Path(subprocess.check_output([*user, "mktemp", "-d"], text=True, cwd="/").strip())
    port, programs = free_port(), PROGRAMS[-1]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"

    def call(program: str, *arguments: str) -> None:
        command = [*user, str(programs / program), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL)

    call("initdb", "-A", "trust", "-U", "mlflow")
    call("pg_ctl", "-o", options, "-l", str(folder / "log"), "-w", "start")
    yield f"postgresql://mlflow@127.0.0.1:{port}/postgres"
    call("pg_ctl", "-m", "immediate", "-w", "stop")
    shutil.rmtree(folder)


def test_eight_trainings_on_a_server_lose_nothing(
    database: str, driver: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = MlflowServer(free_port(), tmp_path / "server.log")
    server.serve(database, tmp_path / "artifacts", **driver)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    try:
        folders = (tmp_path / STUDY.study, tmp_path / "another" / STUDY.study)
        jobs = [(f, name) for f in folders for name, cell in CELLS.items() if cell.trained][:8]
        records = make_records(60)
        for job in jobs:
            write_records(*job, records)
        fork = multiprocessing.get_context("fork")
        processes = [fork.Process(target=log_one_of_eight, args=(*job, records)) for job in jobs]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            assert process.exitcode == 0
        for _ in range(2):
            for folder, cell in jobs:
                (run,) = runs_of(folder, cell)
                assert steps_of(folder, run) == list(range(1, 61))
            assert all(sync_study(STUDY, folder) for folder in folders)
    finally:
        server.kill()
