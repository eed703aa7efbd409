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
from problems.verification.reference_checks import MAJORITY
from sandbox.protocol import Verdict

OWN = "its own reference"


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
        task.task_id: {
            key_of(harness, task, "reference", source): source
            for source in harness.references(task)
        }
        for task in wanted
        if task.task_id not in unfit
    }
    known = dict[str, str]()
    sources = any(rest.values())
    file = JsonLines(folder / f"{harness.name}.references.jsonl") if folder and sources else None
    if file:
        file.open(
            lambda row: known.update({row["key"]: row["reason"]}),
            "remove the file: the references run again",
        )
    missing = {
        key: Completion(name, at, source, whole=True)
        for name, programs in rest.items()
        for at, (key, source) in enumerate(programs.items())
        if key not in known
    }

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
            judge(harness, list(missing.values()), sandbox, Verdicts(None), on_results=keep)
    finally:
        if file:
            file.sync()
            file.close()
    faults = {
        name: _fault([known[key] for key in keys if key in known]) for name, keys in rest.items()
    }
    unfit |= {name: fault for name, fault in faults.items() if fault}
    harness.unfit.update(unfit)
    return unfit


def _lacks_package(result: CompletionResult) -> bool:
    return not result.measured and result.detail.startswith(NEEDS)


def _fault(reasons: Sequence[str]) -> str:
    """Return why a task whose references fail for these reasons ("": passes) is unfit, or "".

    As in verification, a wrong result counts until two references pass: the tests may accept one
    of several right answers. A limit that another reference exceeds says nothing of the tests.
    """
    passed, wrong = reasons.count(""), [each for each in reasons if f"({Verdict.WA})" in each]
    if wrong and 0 < passed < MAJORITY:
        return f"its references disagree: one passes, {wrong[0].replace(OWN, 'another')}"
    return "" if passed or not reasons else reasons[0]


def _reason(result: CompletionResult) -> str:
    """Return why a reference fails, "" if it passes."""
    if result.verdict == Verdict.AC:
        return ""
    return f"{OWN} fails ({result.verdict}) {result.detail}".strip()[:300]
