"""Names each job that fails, as soon as Snakemake knows: `quiet: rules` hides that along with the
rest, and a job that is killed, or runs on a cluster, cannot say it itself.
"""

import logging
import sys


class FailedJobs(logging.Handler):
    """Takes Snakemake's records of failed jobs, and writes where their logs are."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line where the record is of that kind."""
        if getattr(record, "event", None) != "job_error":
            return
        reason = f": {record.rule_msg}" if record.rule_msg else ""
        logs = ", ".join(record.log) or "none"
        print(f"[{record.rule_name}] failed{reason} (log: {logs})", file=sys.stderr, flush=True)
