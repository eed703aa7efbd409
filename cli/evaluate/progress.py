"""Judge completions with a progress bar that shows the pass rate so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from evaluation.judging.harness import Harness
from evaluation.judging.judge import CompletionResult, Verdicts, judge
from evaluation.judging.references import leave_out_unfit
from evaluation.judging.scoring import Submission
from evaluation.statistics.hypothesis_tests import wilson

UPDATE_S = 0.5


def judge_all(
    harness: Harness, submission: Submission, verdicts: Verdicts, errors: Console, home: Path
) -> tuple[list[CompletionResult], float]:
    """Return the verdicts, in the order of the completions, and the seconds that judging took.

    Tasks that cannot be measured are found first; their references run once in this home.
    """
    from sandbox.sandbox import Sandbox, SandboxConfig

    start = time.monotonic()
    with progress_bar(errors) as progress:
        leave_out_unfit(
            harness,
            [each.task_id for each in submission.completions],
            lambda: Sandbox(SandboxConfig(packages=harness.packages)),
            home / "benchmarks",
            _preparation_bar(harness, progress),
        )
        judged = judge(
            harness,
            submission.extracted(harness),
            lambda: Sandbox(SandboxConfig(packages=harness.packages)),
            verdicts,
            sanitized=submission.sanitized,
            on_results=_judging_bar(harness, progress),
            on_prepare=_preparation_bar(harness, progress),
        )
    return judged, time.monotonic() - start


def progress_bar(errors: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[so_far]}"),
    )
    return Progress(*columns, console=errors, transient=True)


def _judging_bar(
    harness: Harness, progress: Progress
) -> Callable[[Sequence[CompletionResult | None]], None]:
    """Add a bar; return its callback, which shows the pass rate so far with Wilson's interval."""
    bar = progress.add_task(f"judging {harness.name}", total=None, so_far="")
    updated_at = 0.0

    def update(judged: Sequence[CompletionResult | None]) -> None:
        nonlocal updated_at
        if time.monotonic() - updated_at < UPDATE_S and None in judged:
            return
        updated_at = time.monotonic()
        measured = [each for each in judged if each is not None and each.measured]
        passed = sum(each.verdict == "AC" for each in measured)
        low, high = wilson(passed, len(measured)) if measured else (0.0, 1.0)
        rate = 100 * passed / max(1, len(measured))
        progress.update(
            bar,
            total=len(judged),
            completed=sum(each is not None for each in judged),
            so_far=f"{rate:.1f} % pass ({100 * low:.0f} to {100 * high:.0f} %)",
        )

    return update


def _preparation_bar(harness: Harness, progress: Progress) -> Callable[[int, int], None]:
    """Add a bar for the canonical solutions, hidden until the first of them has run."""
    title = f"canonical solutions of {harness.name}"
    bar = progress.add_task(title, visible=False, so_far="")

    def update(done: int, total: int) -> None:
        progress.update(bar, visible=True, total=total, completed=done)

    return update
