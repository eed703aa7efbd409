"""Which tasks of a benchmark can be measured: its references run before any model's programs.

In: a harness, its tasks, a sandbox. Out: for each task that no verdict would be right for, the
reason. Such a task is left out by name; scored, it would count right programs as wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from artifacts.json_lines import JsonLines
from evaluation.completions import Completion
from evaluation.judging.harness import NEEDS, Harness
from evaluation.judging.judge import CompletionResult, Verdicts, judge, key_of
from evaluation.sampling import Progress
from sandbox.protocol import Verdict


def leave_out_unfit(
    harness: Harness,
    tasks: Iterable[str],
    sandbox: Callable[[], AbstractContextManager[Any]],
    folder: Path | None,
    on_progress: Progress = lambda done, total: None,
) -> dict[str, str]:
    """Return the reasons for tasks (by id) that cannot be measured; the harness leaves them out.

    folder: keeps each result, so that the references of a task run once; None keeps nothing. A
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
    missing = {key: task for key, task in rest.items() if key not in known}

    def keep(results: Sequence[CompletionResult | None]) -> None:
        """Keep the reasons that are new, so that a run that is stopped continues there."""
        reasons = {
            key: _reason(result)
            for key, result in zip(missing, results, strict=True)
            if result and key not in known and not _lacks_package(result)
        }
        known.update(reasons)
        if file:
            file.append(({"key": key, "reason": why} for key, why in reasons.items()), synced=False)
        on_progress(sum(map(bool, results)), len(results))

    try:
        if missing:
            references = [
                Completion(task.task_id, 0, harness.reference(task), whole=True)
                for task in missing.values()
            ]
            judge(harness, references, sandbox, Verdicts(None), on_results=keep)
    finally:
        if file:
            file.sync()
            file.close()
    unfit |= {task.task_id: known[key] for key, task in rest.items() if known.get(key)}
    harness.unfit.update(unfit)
    return unfit


def _lacks_package(result: CompletionResult) -> bool:
    return not result.measured and result.detail.startswith(NEEDS)


def _reason(result: CompletionResult) -> str:
    """Return why a reference fails, "" if it passes."""
    if result.verdict == Verdict.AC:
        return ""
    return f"its own reference fails ({result.verdict}) {result.detail}".strip()[:300]
