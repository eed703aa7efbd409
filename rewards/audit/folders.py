"""Audit folders of tasks."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator
from pathlib import Path

from problems.task_folders.dockerfile import read_image
from problems.task_folders.folder import read_folder
from problems.task_folders.needs import unrunnable
from problems.task_folders.task_folder import VERIFIERS, find_tasks, read_task
from rewards.audit.findings import CHECKS, AuditedTask, Finding, audited
from rewards.audit.run import CHECKED, SECONDS, jobs, outcomes
from rewards.audit.static import static_findings
from rewards.audit.verifiers_folder import verifiers_findings
from sandbox.sandbox import Runs


def audit_folders(
    path: Path, sandbox: Runs | None, seconds: float = SECONDS, only: Container[str] = ()
) -> Iterator[AuditedTask]:
    """Yield the findings on each task folder at and below a path.

    sandbox: None for the checks of files alone. seconds: of CPU for each of the two jobs of a
    task, which run side by side; three times as much for tests that wait. only: names of tasks;
    none for all.
    """
    for number, (folder, kind) in enumerate(find_tasks(path)):
        started = time.monotonic()
        name = str(folder.relative_to(path)) if folder != path else path.resolve().name
        name = name.encode("utf-8", "replace").decode()
        if only and name not in only:
            continue
        if kind == VERIFIERS:
            findings = list(verifiers_findings(read_folder(folder)))
            taken_s = time.monotonic() - started
            yield audited(name, kind, findings, taken_s, CHECKS, "its code is not run")
            continue
        task = read_task(folder, kind, name)
        image = read_image(task.dockerfile, task.context)
        findings = list(static_findings(task, image))
        why = "only files were checked" if sandbox is None else unrunnable(task, image)
        if why or sandbox is None:
            findings += [Finding(check, "skip", why) for check in CHECKED]
        else:
            reports = {
                report.job_id: report for report in sandbox.run(jobs(task, image, number, seconds))
            }
            findings += outcomes(task, reports, number)
        yield audited(task.name, kind, findings, time.monotonic() - started, tuple(CHECKS))
