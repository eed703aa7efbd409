"""Serialization of a job for a worker, and of its report (see sandbox/worker/worker.py)."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from sandbox.backends import WorkerDied
from sandbox.protocol import (
    COMPARES,
    AssertTest,
    CallTest,
    Job,
    Report,
    StdioTest,
    Test,
    TestResult,
    UnittestTest,
    Verdict,
    methods_of,
)
from sandbox.wire import NotPlain, encode

GRACE_S = 60.0  # on top of all limits of a job
FOLDER_GRACE_S = 120.0  # and for a zygote that imports the modules of a package folder


def longest_s(job: Job) -> float:
    """Return how long to wait for the job's answer: a worker that takes longer is broken."""
    runs = len(job.tests)
    if job.style == "unittest":
        runs = sum(methods_of(test.source) for test in job.tests if isinstance(test, UnittestTest))
    grace_s = GRACE_S + (FOLDER_GRACE_S if job.package_folder else 0.0)
    return grace_s + job.limits.wall_s * runs * 2


def payload(job: Job) -> bytes:
    """Return the job as the worker reads it, with call values encoded for transport and comparison.
    Raises ValueError for an invalid job.
    """
    kinds = {"call": CallTest, "stdio": StdioTest, "assert": AssertTest, "unittest": UnittestTest}
    if not job.tests or any(type(test) is not kinds[job.style] for test in job.tests):
        raise ValueError(
            f"job {job.job_id}: style {job.style} needs at least one test, all of them "
            f"{kinds[job.style].__name__}"
        )
    if job.entry_point is None and job.style != "stdio":
        raise ValueError(f"job {job.job_id}: style {job.style} needs an entry point")
    if job.compare not in COMPARES[job.style] or (
        job.checker is not None and job.style not in ("call", "stdio")
    ):
        raise ValueError(
            f"job {job.job_id}: style {job.style} compares {' or '.join(COMPARES[job.style])}, "
            "and only call and stdio have a checker"
        )
    message = {
        "id": job.job_id, "source": job.source, "style": job.style, "entry": job.entry_point,
        "prompt": job.prompt, "limits": vars(job.limits),
        "tolerance": job.tolerance, "compare": job.compare, "checker": job.checker,
        "packages": list(job.packages), "in_place": job.in_place,
        "package_folder": job.package_folder,
        "seed": job.seed,
        "tests": [_test(job, at, test) for at, test in enumerate(job.tests)],
    }  # fmt: skip
    return json.dumps(message).encode()


def _test(job: Job, at: int, test: Test) -> dict[str, Any]:
    if not isinstance(test, CallTest):
        return asdict(test)
    try:
        return {"call": encode([list(test.args), test.kwargs]), "want": encode(test.expected)}
    except NotPlain as error:
        raise ValueError(
            f"job {job.job_id}: test {at}: {error} (write it as an assert test)"
        ) from None


def report(job: Job, answer: dict[str, Any]) -> Report:
    """Return the report in a worker's answer. Raises WorkerDied, KeyError, TypeError or ValueError
    if it is not an answer to this job.
    """
    names = answer["names"] or [""] * len(answer["tests"])
    rows = tuple(
        TestResult(Verdict(verdict), detail, wall_s, name)
        for (verdict, detail, wall_s), name in zip(answer["tests"], names, strict=True)
    )
    if len(rows) < len(job.tests) or (len(rows) > len(job.tests) and job.style != "unittest"):
        raise WorkerDied(
            f"the worker reported {len(rows)} tests for a job of {len(job.tests)} tests"
        )
    return Report(
        job.job_id, Verdict(answer["verdict"]), rows, cpu_s=answer["cpu_s"],
        wall_s=answer["wall_s"], peak_bytes=answer["peak_bytes"],
        isolation=answer["isolation"], trust=answer["trust"], detail=answer["detail"],
        denied=answer["denied"], tried=answer["tried"],
        unusable=answer["unusable"], absent=tuple(answer["absent"]),
    )  # fmt: skip
