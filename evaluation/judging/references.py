"""Which tasks of a benchmark can be measured: its references run before any model's programs.

In: a harness, its tasks, a sandbox. Out: for each task that no verdict would be right for, the
reason. Such a task is left out by name; scored, it would count right programs as wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from evaluation.completions import Completion
from evaluation.judging.harness import NEEDS, Harness, Task
from evaluation.judging.judge import Verdicts, judge, key_of
from evaluation.sampling import Progress
from problems.json_lines import JsonLines
from sandbox.protocol import Verdict


def leave_out_unfit(
    harness: Harness,
    tasks: Iterable[str],
    sandbox: Callable[[], AbstractContextManager[Any]],
    folder: Path | None,
    on_progress: Progress = lambda done, total: None,
) -> dict[str, str]:
    """Return the reasons for tasks (by id) that cannot be measured; the harness leaves them out.

    folder: keeps the results, so that the references of a task run once; None keeps nothing. A
    missing package is not kept, because it may be installed later. Raises NotJudged.
    """
    wanted = [task for name in dict.fromkeys(tasks) if (task := harness.tasks.get(name))]
    unfit = {task.task_id: why for task in wanted if (why := harness.several_answers(task))}
    rest = {
        key_of(harness, task, "reference", harness.reference(task)): task
        for task in wanted
        if task.task_id not in unfit and harness.reference(task)
    }
    known = dict[str, str]()
    file = JsonLines(folder / f"{harness.name}.references.jsonl") if folder and rest else None
    if file:
        file.open(
            lambda row: known.update({row["key"]: row["reason"]}),
            "remove the file: the references run again",
        )
    try:
        missing = {key: task for key, task in rest.items() if key not in known}
        reasons = _faults(harness, missing, sandbox, on_progress)
        if file:
            file.append({"key": key, "reason": why} for key, why in reasons.items())
    finally:
        if file:
            file.close()
    known |= reasons
    unfit |= {task.task_id: known[key] for key, task in rest.items() if known.get(key)}
    harness.unfit.update(unfit)
    return unfit


def _faults(
    harness: Harness,
    tasks: Mapping[str, Task],
    sandbox: Callable[[], AbstractContextManager[Any]],
    on_progress: Progress,
) -> dict[str, str]:
    """Run the references; return why each fails, "" if it passes. A task that this machine lacks a
    package of is left out.
    """
    if not tasks:
        return {}
    results = judge(
        harness,
        [
            Completion(task.task_id, 0, harness.reference(task), whole=True)
            for task in tasks.values()
        ],
        sandbox,
        Verdicts(None),
        on_results=lambda some: on_progress(sum(map(bool, some)), len(some)),
    )
    return {
        key: ""
        if result.verdict == Verdict.AC
        else f"its own reference fails ({result.verdict}) {result.detail}".strip()[:300]
        for key, result in zip(tasks, results, strict=True)
        if result.measured or not result.detail.startswith(NEEDS)
    }
