"""Slurm on this host alone, with two pretended GPUs; starts as root, and leaves nothing behind."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

ETC = Path("/etc/slurm")  # jobs look nowhere else: the plugin does not hand SLURM_CONF on
DAEMONS = ("slurmd", "slurmctld", "munged")
SLURM_CONF = """\
ClusterName=test
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket={run}/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={run}/slurmctld.pid
SlurmdPidFile={run}/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MailProg=/bin/true
MpiDefault=none
ReturnToService=2
KillWait=5
MinJobAge=3600
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
GresTypes=gpu
NodeName=localhost NodeAddr=127.0.0.1 CPUs=2 RealMemory={memory} Gres=gpu:2 State=UNKNOWN
PartitionName=gpu Nodes=localhost Default=YES MaxTime=240 State=UP
PartitionName=cpu Nodes=localhost MaxTime=240 State=UP
"""
GRES_CONF = "AutoDetect=off\nNodeName=localhost Name=gpu File={run}/gpu[0-1]\n"


class SlurmHost:
    """munged, slurmctld and slurmd, all their files below one folder but for two in /etc/slurm."""

    def __init__(self, jobs: Path) -> None:
        """Make a host whose jobs all run below one folder, by which what they leave is known."""
        self.jobs = jobs
        # Not in pytest's: munged wants a socket whose folders everybody may search.
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-host-"))
        self.folder.chmod(0o755)
        self.run = self.folder / "run"
        self.files = [ETC / "slurm.conf", ETC / "gres.conf"]
        there = [str(file) for file in self.files if file.exists()]
        assert not there, f"{', '.join(there)}: this host has a Slurm of its own, left alone"

    def start(self) -> None:
        """Start the daemons and wait for the node."""
        for name in ("state", "spool", "log", "run"):
            (self.folder / name).mkdir(mode=0o755)
        for index in (0, 1):  # Slurm wants character devices
            os.mknod(self.run / f"gpu{index}", 0o600 | 0o020000, os.makedev(1, 3))
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        values = {"folder": self.folder, "run": self.run}
        values["memory"] = psutil.virtual_memory().total // 2**20 * 3 // 4
        ETC.mkdir(exist_ok=True)
        for file, text in zip(self.files, (SLURM_CONF, GRES_CONF), strict=True):
            file.write_text(text.format(**values))
        run = self.run
        subprocess.run(
            [
                *("munged", f"--key-file={key}", f"--socket={run}/munge.sock"),
                *(f"--pid-file={run}/munged.pid", f"--seed-file={run}/munged.seed"),
                f"--log-file={self.folder}/log/munged.log",
            ],
            check=True,
        )
        subprocess.run(["slurmctld"], check=True)
        subprocess.run(["slurmd", "-N", "localhost"], check=True)
        self.wait_for(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"), 60)

    def stop(self) -> None:
        """End the daemons and whatever their jobs left, and remove what was written."""
        pids = [int(f.read_text()) for name in DAEMONS if (f := self.run / f"{name}.pid").is_file()]
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        _, alive = psutil.wait_procs([psutil.Process(p) for p in pids if psutil.pid_exists(p)], 20)
        left = [*alive, *self.leftovers()]
        for process in left:
            process.kill()
        psutil.wait_procs(left, 20)
        for file in self.files:
            file.unlink(missing_ok=True)
        if not any(ETC.iterdir()):
            ETC.rmdir()
        shutil.rmtree(self.folder, ignore_errors=True)

    def leftovers(self) -> list[psutil.Process]:
        """Processes of jobs and of the daemons, known by the folders that they name or work in."""
        places, found = (str(self.jobs), str(self.folder)), []
        for process in psutil.process_iter(["cmdline", "cwd"]):
            words = " ".join([*(process.info["cmdline"] or []), process.info["cwd"] or ""])
            if process.pid != os.getpid() and any(place in words for place in places):
                found.append(process)
        return found

    def ask(self, *command: str) -> str:
        """What a command of Slurm prints."""
        return subprocess.run(command, capture_output=True, text=True).stdout

    @staticmethod
    def wait_for(condition, seconds: float) -> None:
        """Wait until something holds; a bounded time."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "nothing happened"
            time.sleep(0.2)
