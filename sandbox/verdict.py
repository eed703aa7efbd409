"""The verdict of a test, a job or a request."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """The result of a test or a job. INFRA is a failure of the sandbox, never of the program.
    INVALID is a fault of the request, and no program has run. Neither ever becomes a score.
    """

    AC = "AC"  # accepted: every test was decided, and passed
    WA = "WA"  # wrong answer
    TLE = "TLE"  # over its limit of CPU or wall time
    MLE = "MLE"  # over its limit of memory
    OLE = "OLE"  # over its limit of output
    RE = "RE"  # raised an exception, crashed, or exited early
    CE = "CE"  # not a Python program
    INFRA = "INFRA"
    INVALID = "INVALID"  # of a request, not of a job: see Job.read
