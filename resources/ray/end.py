"""Why a training ended: finished, failed, or a process of it was killed.

In: Ray's record of the job, and the trainer's log. Out: an `End`, in words for people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verl_jobs.log import last_line
from verl_jobs.trainer.entry import DIED

# Status of a job whose process died, rather than ended with an error: it is submitted again.
DEAD = "LOST"
# ray/src/ray/raylet/worker_killing_policy: Ray kills a process before the kernel does.
MEMORY = re.compile(r"running low on memory.*?was (?P<used>\S+) used / (?P<limit>\S+) limit", re.S)


@dataclass(frozen=True)
class End:
    """How a Ray job ended.

    status: Ray's, or DEAD. cause: "" if none is known. memory: the machine had too little.
    """

    status: str
    cause: str = ""
    memory: bool = False


def end_of(info: Any, log: Path) -> End:
    """Return the end of a job that failed. info: Ray's `JobDetails` of it.

    A process that Ray killed for lack of memory died, whether it was the trainer itself, or a
    process whose end the trainer reports as its error.
    """
    cause = last_error(log)
    text = info.message or "" if died(info.driver_exit_code) else cause
    if short := MEMORY.search(text):
        used = f"{short['used']} of {short['limit']} were in use, end other programs"
        cause = f"Ray ended a process because the machine ran low on memory ({used})"
        return End(DEAD, cause, memory=True)
    return End(DEAD if died(info.driver_exit_code) else "FAILED", cause)


def last_error(log: Path) -> str:
    """Return the last line of the log that looks like an error."""
    return last_line(log, "Error", "error:", "died") or "it left no log"


def died(code: int | None) -> bool:
    """Return whether a signal ended the training process, or a Ray process under it.

    code: as subprocess or a shell reports it; None if nobody saw it end.
    """
    return code is None or code < 0 or code == DIED or code > 128
