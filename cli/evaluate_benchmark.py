"""`ratchet evaluate --benchmark NAME` with --completions, --model or --endpoint: a verdict for each
sample, and the score.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from artifacts.atomic import write_atomic
from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.published import Opened
from evaluation.benchmarks.registry import opened
from evaluation.completions import read
from evaluation.generation.completion_sources import (
    Endpoint,
    Form,
    GenerationReport,
    Source,
    folder_of,
    generate_completions,
)
from evaluation.judging.harness import Harness
from evaluation.judging.judge import CompletionResult, Verdicts, check, judge
from evaluation.judging.scoring import Submission, scorecard
from evaluation.promotion.rate import points
from evaluation.reports.cost import Price
from evaluation.reports.figures import Figures, Score, Suspects, verdicts
from evaluation.sampling import Sampling
from evaluation.scorecard import Origin
from evaluation.statistics.hypothesis_tests import wilson


@dataclass(frozen=True)
class EvaluationOptions:
    """What the command line said."""

    benchmark: str
    data: Path | None = None
    out: Path | None = None
    sanitized: bool = False
    partial: bool = False
    ks: tuple[int, ...] = ()
    price: Price = field(default_factory=Price)
    suspects: Suspects = field(default_factory=dict)

    def origin(self, at: Opened, **who: str) -> Origin:
        """Return the scorecard's origin. who: the file of completions, or the model."""
        named = str(Path(self.benchmark).absolute()) if at.published.custom else self.benchmark
        data = str(at.place.path.absolute()) if at.place.path else ""
        return Origin(benchmark=named, data=data, sanitized=self.sanitized, **who)


@dataclass(frozen=True)
class ModelOptions:
    """Who is asked, and how. With an endpoint, `model` is its name there."""

    model: str | None
    endpoint: str | None
    n: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    form: Literal["auto", "chat", "base"] = "auto"


def evaluate_completions(
    path: Path, options: EvaluationOptions, home: Path, console: Console, errors: Console
) -> int:
    """Judge completions of a file. Exits 0 with a score, 1 if no task could be measured. Raises
    ProblemError, FileNotFoundError, NotJudged.
    """
    at = opened(options.benchmark, options.data, home)
    harness = at.benchmark().harness
    broken: list[str] | None = [] if options.partial else None
    completions = [harness.named(each) for each in read(path, harness.prefer, broken)]
    for line in broken or ():
        errors.print(f"left out: {line}", style="yellow", highlight=False, soft_wrap=True)
    name = path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
    submission = Submission(completions, options.origin(at, completions=str(path.absolute())), name)
    return score(harness, submission, options, console, errors, home)


def evaluate_model(
    model_options: ModelOptions,
    options: EvaluationOptions,
    home: Path,
    console: Console,
    errors: Console,
) -> int:
    """Generate completions, cached in the home, then judge them as `evaluate_completions` does.
    Raises MissingCompletions and EndpointDown too.
    """
    at = opened(options.benchmark, options.data, home)
    benchmark = at.benchmark()
    drawing = {
        "n": model_options.n,
        "temperature": model_options.temperature,
        "top_p": model_options.top_p,
        "seed": model_options.seed,
    }
    folder = Path(model_options.model or "").expanduser()
    model = (
        str(folder.absolute())
        if model_options.model and folder.is_dir() and not model_options.endpoint
        else model_options.model or ""
    )
    origin = options.origin(
        at, model=model, endpoint=model_options.endpoint or "", form=model_options.form
    )
    submission, report = generate_submission(
        origin, benchmark, benchmark.sampling.model_copy(update=drawing), home, errors
    )
    if len(report.models) > 1:
        errors.print(
            "answered by "
            + ", ".join(f"{name} ({count})" for name, count in report.models.items()),
            style="yellow",
            highlight=False,
        )
    return score(benchmark.harness, submission, options, console, errors, home)


def generate_submission(
    origin: Origin,
    benchmark: Benchmark,
    sampling: Sampling,
    home: Path,
    errors: Console,
) -> tuple[Submission, GenerationReport]:
    """Return the completions of the model or endpoint that the origin names; cached ones are not
    generated again.
    """
    source, report, who = (
        source_of(origin),
        GenerationReport(),
        f"{origin.model} {origin.endpoint}".strip(),
    )
    with progress_bar(errors) as progress:
        bar = progress.add_task(f"answers of {who}", total=None, so_far="")
        completions = generate_completions(
            benchmark,
            source,
            sampling,
            home / "answers",
            lambda done, of: progress.update(bar, completed=done, total=of),
            report,
        )
    completions = [benchmark.harness.named(each) for each in completions]
    chats = source.chats
    texts = [
        benchmark.prompt(each)[-1]["content"] if chats else benchmark.raw_prompt(each)
        for each in benchmark.problems
    ]
    prompts = {
        each.task_id: text for each, text in zip(completions[:: sampling.n], texts, strict=True)
    }
    content, name = (
        str(report.identity.get("folder", "")),
        Path(origin.model).name if Path(origin.model).is_absolute() else origin.model,
    )
    return Submission(
        completions, origin, name or "champion", content, sampling.model_dump(mode="json"), prompts
    ), report


def source_of(origin: Origin) -> Source:
    """Who is asked. With an endpoint, `model` is its name there. Raises FileNotFoundError."""
    if origin.endpoint:
        return Endpoint(
            origin.endpoint, origin.model or "champion", "base" if origin.form == "base" else "chat"
        )
    return replace(folder_of(origin.model), form=cast(Form, origin.form))


def score(
    harness: Harness,
    submission: Submission,
    options: EvaluationOptions,
    console: Console,
    errors: Console,
    home: Path,
) -> int:
    """Judges, writes the verdicts and the scorecard, prints what it comes to."""
    missing = check(harness, submission.completions, options.partial)
    known = Verdicts(home / "benchmarks" / f"{harness.name}.verdicts.jsonl")
    try:
        judged, seconds = judge_all(harness, submission, known, errors)
    finally:
        known.close()
    if options.out:
        write_atomic(options.out, "".join(json.dumps(each.row()) + "\n" for each in judged))
    if not any(each.measured for each in judged):
        errors.print(
            f"no task of {harness.name} could be measured here: {judged[0].detail}", style="red"
        )
        return 1
    card = scorecard(harness, submission, judged, missing, seconds)
    figures = Figures.of(card, options.ks, options.suspects, options.price)
    if options.out:
        card.write(
            options.out.with_name(f"{options.out.name.split('.')[0]}.scorecard.json"),
            figures.as_json(),
        )
    _show(figures, console)
    return 0


def judge_all(
    harness: Harness, submission: Submission, verdicts: Verdicts, errors: Console
) -> tuple[list[CompletionResult], float]:
    """Judge with a progress bar. Returns the verdicts, in the order of the completions, and the
    seconds.
    """
    from sandbox.sandbox import Sandbox, SandboxConfig

    begun = time.monotonic()
    with progress_bar(errors) as progress:
        opens, sanitized = (
            lambda: Sandbox(SandboxConfig(packages=harness.packages)),
            submission.sanitized,
        )
        judged = judge(
            harness,
            submission.extracted(harness),
            opens,
            verdicts,
            sanitized,
            *_told(harness, progress),
        )
    return judged, time.monotonic() - begun


def _show(figures: Figures, console: Console) -> None:
    card = figures.card
    table = Table(
        title=f"{card.benchmark} {card.release}, {len(card.samples)} samples", title_justify="left"
    )
    for heading in ("tests", "score", "value", "95 % interval", "tasks"):
        table.add_column(heading, justify="right" if heading in ("value", "tasks") else "left")
    for each in figures.full:
        _rows(table, each, each.name)
    for each in figures.clean or () if figures.suspect else ():
        _rows(table, each, f"{each.name}, clean")
    console.print(table)
    lines = [
        f"verdicts: {', '.join(f'{count} {verdict}' for verdict, count in verdicts(card).items())}",
        f"cut by length: {100 * card.cut:.1f} %",
    ]
    if figures.per_solved_problem:
        lines.append(f"a solved problem took: {figures.per_solved_problem}")
    if figures.suspect is not None:
        lines.append(
            f"clean: without the {len(figures.suspect)} tasks that resemble something in this "
            "home's training data"
        )
    if card.unmeasured:
        tasks = sorted(card.unmeasured)
        lines.append(
            f"not measured: {len(tasks)} tasks ({_few(tasks)}); the first "
            f"{card.unmeasured[tasks[0]]}"
        )
    if card.partial:
        of = len(card.partial) + len(card.first) + len(card.unmeasured)
        lines.append(
            f"PARTIAL: {len(card.partial)} of {of} tasks have no completion ({_few(card.partial)})"
        )
    console.print("\n".join(lines), highlight=False, soft_wrap=True)


def _rows(table: Table, score: Score, name: str) -> None:
    for k, rate in score.at.items():
        table.add_row(
            name,
            f"pass@{k}",
            f"{points(rate.share)} %",
            f"{points(rate.low)} to {points(rate.high)} %",
            str(score.tasks),
        )
    for k, why in score.lacking.items():
        table.add_row(name, f"pass@{k}", "", why, str(score.tasks))


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def progress_bar(errors: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[so_far]}"),
    )
    return Progress(*columns, console=errors, transient=True)


def _told(harness: Harness, progress: Progress) -> tuple[Any, Any]:
    """Return the functions that draw the bars: the share that passes so far, with Wilson's
    interval; and the preparation.
    """
    bar, before = (
        progress.add_task(f"judging {harness.name}", total=None, so_far=""),
        progress.add_task("references", visible=False, so_far=""),
    )
    drawn = 0.0

    def told(judged: Sequence[CompletionResult | None]) -> None:
        nonlocal drawn
        if time.monotonic() - drawn < 0.5 and None in judged:
            return
        drawn = time.monotonic()
        decided = [each for each in judged if each is not None and each.measured]
        passed = sum(each.verdict == "AC" for each in decided)
        low, high = wilson(passed, len(decided)) if decided else (0.0, 1.0)
        so_far = (
            f"{100 * passed / max(1, len(decided)):.1f} % pass ({100 * low:.0f} to "
            f"{100 * high:.0f} %)"
        )
        progress.update(
            bar,
            total=len(judged),
            completed=sum(each is not None for each in judged),
            so_far=so_far,
        )

    def preparing(done: int, total: int) -> None:
        progress.update(
            before,
            visible=True,
            total=total,
            completed=done,
            description=f"canonical solutions of {harness.name}",
        )

    return told, preparing
