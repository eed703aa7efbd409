"""`ratchet evaluate --benchmark NAME` with --completions, --model or --endpoint: a verdict a sample, and the score."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from artifacts.store import write_atomic
from evaluation.completions import Completion, read
from evaluation.cost import Price, Spent
from evaluation.drawn import Endpoint, Source, Told, answers, folder_of
from evaluation.harness.judging import Harness, Judged, Verdicts, check, judge
from evaluation.harness.published import opened
from evaluation.pass_at_k import curve
from evaluation.statistics import Interval, wilson
from resources.home import Home

KS = (1, 10, 100)


@dataclass(frozen=True)
class Asked:
    """What the command line said."""

    benchmark: str
    data: Path | None = None
    out: Path | None = None
    sanitized: bool = False
    partial: bool = False
    ks: tuple[int, ...] = ()
    price: Price = field(default_factory=Price)


@dataclass(frozen=True)
class Asks:
    """Who is asked, and how. With an endpoint, `model` is its name there."""

    model: str | None
    endpoint: str | None
    n: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    form: Literal["auto", "chat", "base"] = "auto"

    @property
    def source(self) -> Source:
        if self.endpoint:
            return Endpoint(self.endpoint, self.model or "champion", "base" if self.form == "base" else "chat")
        return replace(folder_of(self.model or ""), form=self.form)


@dataclass(frozen=True)
class Score:
    """Of one set of tests. `lacking`: k -> why there is no estimate."""

    name: str
    correct: dict[str, int]
    drawn: dict[str, int]
    at: dict[int, float] = field(default_factory=dict)
    intervals: dict[int, Interval] = field(default_factory=dict)
    lacking: dict[int, str] = field(default_factory=dict)


def evaluate_completions(path: Path, asked: Asked, console: Console, errors: Console) -> int:
    """Exits 0 with a score, 1 where no task could be measured. Raises ProblemError, FileNotFoundError, NotJudged."""
    home = Home.from_environment().path
    found = opened(asked.benchmark, asked.data, home).harness(home)
    broken: list[str] | None = [] if asked.partial else None
    completions = read(path, found.prefer, broken)
    for line in broken or ():
        errors.print(f"left out: {line}", style="yellow", highlight=False, soft_wrap=True)
    return score(found, completions, str(path), asked, console, errors, home)


def evaluate_model(asks: Asks, asked: Asked, console: Console, errors: Console) -> int:
    """Answers first, kept as they come in the home; then as `evaluate_completions`. Raises Unanswered and EndpointDown too."""
    home = Home.from_environment().path
    at = opened(asked.benchmark, asked.data, home)
    found, benchmark = at.harness(home), at.benchmark()
    drawing = {"n": asks.n, "temperature": asks.temperature, "top_p": asks.top_p, "seed": asks.seed}
    sampling, told, who = benchmark.sampling.model_copy(update=drawing), Told(), f"{asks.model or ''} {asks.endpoint or ''}".strip()
    with _progress(errors) as progress:
        bar = progress.add_task(f"answers of {who}", total=None, so_far="")
        drawn = answers(benchmark, asks.source, sampling, home / "answers", lambda done, of: progress.update(bar, completed=done, total=of), told)
    if len(told.models) > 1:
        errors.print(f"answered by {', '.join(f'{name} ({count})' for name, count in told.models.items())}", style="yellow", highlight=False)
    kept = [found.answered(found.tasks[each.task_id], each) for each in map(found.named, drawn)]
    return score(found, kept, who, asked, console, errors, home)


def score(found: Harness, completions: Sequence[Completion], who: str, asked: Asked, console: Console, errors: Console, home: Path) -> int:
    """Judges, writes the verdicts, prints the scorecard."""
    completions = [found.named(each) for each in completions]
    missing = check(found, completions, asked.partial)
    verdicts = Verdicts(home / "benchmarks" / f"{found.name}.verdicts.jsonl")
    begun = time.monotonic()
    try:
        with _progress(errors) as progress:
            judged = judge(found, completions, lambda: _sandbox(found), verdicts, asked.sanitized, *_told(found, progress))
    finally:
        verdicts.close()
    rows = [each.row() for each in judged]
    if asked.out:
        write_atomic(asked.out, "".join(json.dumps(row) + "\n" for row in rows))
    measured = [each for each in judged if each.measured]
    if not measured:
        errors.print(f"no task of {found.name} could be measured here: {judged[0].detail}", style="red")
        return 1
    scores = [_score(which, measured, asked.ks or KS, explicit=bool(asked.ks)) for which in found.sets]
    card = _card(found, who, asked, judged, missing, scores, time.monotonic() - begun)
    solved = len({each.task_id for each in measured if each.verdict == "AC"})
    spent = Spent(solved, sum(each.tokens or 0 for each in completions), sum(each.seconds or 0.0 for each in completions))
    card["spent"] = {"tokens": spent.tokens or None, "seconds": spent.seconds or None, "cost": spent.cost(asked.price)}
    if spent.tokens or spent.seconds:
        card["spent"]["a solved problem"] = spent.a_problem(asked.price)
    if asked.out:
        write_atomic(asked.out.with_name(f"{asked.out.name.split('.')[0]}.scorecard.json"), json.dumps(card, indent=1) + "\n")
    _show(card, scores, console)
    return 0


def _sandbox(found: Harness) -> AbstractContextManager[Any]:
    from sandbox.sandbox import Sandbox, SandboxConfig

    return Sandbox(SandboxConfig(packages=found.packages))


def _score(which: str, judged: Sequence[Judged], ks: Sequence[int], explicit: bool) -> Score:
    correct, drawn = defaultdict[str, int](int), defaultdict[str, int](int)
    for each in judged:
        drawn[each.task_id] += 1
        correct[each.task_id] += each.passed[which] is True
    made = Score(which, dict(correct), dict(drawn))
    fewest = min(drawn, key=lambda task: drawn[task])
    for k in ks:
        if drawn[fewest] < k:
            if explicit:
                made.lacking[k] = f"no estimate: {fewest} has {drawn[fewest]} samples"
            continue
        (found,) = curve([correct[task] for task in drawn], list(drawn.values()), [k])
        single = k == 1 and max(drawn.values()) == 1
        made.at[k] = found.share
        made.intervals[k] = wilson(sum(correct.values()), len(drawn)) if single else Interval(found.low, found.high)
    return made


def _card(
    found: Harness, who: str, asked: Asked, judged: Sequence[Judged], missing: list[str], scores: Sequence[Score], seconds: float
) -> dict[str, Any]:
    kinds = defaultdict[str, int](int)
    for each in judged:
        kinds[each.verdict] += 1
    return {
        "benchmark": found.name,
        "release": found.release,
        "harness": f"{found.version} (as {found.upstream})",
        "answers": who,
        "sanitized": asked.sanitized,
        "tasks": len(found.tasks),
        "samples": len(judged),
        "partial": missing or None,
        "unmeasured": {each.task_id: each.detail for each in judged if not each.measured},
        "cut": sum(each.cut for each in judged) / len(judged),
        "verdicts": dict(sorted(kinds.items())),
        "scores": {
            each.name: {f"pass@{k}": {"value": each.at[k], "low": each.intervals[k].low, "high": each.intervals[k].high} for k in each.at}
            | {f"pass@{k}": {"value": None, "why": why} for k, why in each.lacking.items()}
            for each in scores
        },
        "seconds": round(seconds, 2),
    }


def _show(card: dict[str, Any], scores: Sequence[Score], console: Console) -> None:
    table = Table(title=f"{card['benchmark']} {card['release']}, {card['samples']} samples", title_justify="left")
    for heading in ("tests", "score", "value", "95 % interval", "tasks"):
        table.add_column(heading, justify="right" if heading in ("value", "tasks") else "left")
    for each in scores:
        for k, value in each.at.items():
            low, high = each.intervals[k]
            table.add_row(each.name, f"pass@{k}", f"{100 * value:.1f} %", f"{100 * low:.1f} to {100 * high:.1f} %", str(len(each.drawn)))
        for k, why in each.lacking.items():
            table.add_row(each.name, f"pass@{k}", "", why, str(len(each.drawn)))
    console.print(table)
    told = [
        f"verdicts: {', '.join(f'{count} {verdict}' for verdict, count in card['verdicts'].items())}",
        f"cut by length: {100 * card['cut']:.1f} %",
    ]
    if said := card["spent"].get("a solved problem"):
        told.append(f"a solved problem took: {said}")
    if card["unmeasured"]:
        told.append(f"not measured: {len(card['unmeasured'])} tasks ({_few(sorted(card['unmeasured']))})")
    if card["partial"]:
        told.append(f"PARTIAL: {len(card['partial'])} of {card['tasks']} tasks have no completion ({_few(card['partial'])})")
    console.print("\n".join(told), highlight=False, soft_wrap=True)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _progress(errors: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.fields[so_far]}"))
    return Progress(*columns, console=errors, transient=True)


def _told(found: Harness, progress: Progress) -> tuple[Any, Any]:
    """What draws the bar: the share that passes so far, of what is decided, with Wilson's interval; and the bar of what comes before."""
    bar, before = progress.add_task(f"judging {found.name}", total=None, so_far=""), progress.add_task("references", visible=False, so_far="")
    drawn = 0.0

    def told(judged: Sequence[Judged | None]) -> None:
        nonlocal drawn
        if time.monotonic() - drawn < 0.5 and None in judged:
            return
        drawn = time.monotonic()
        decided = [each for each in judged if each is not None and each.measured]
        passed = sum(each.verdict == "AC" for each in decided)
        low, high = wilson(passed, len(decided)) if decided else (0.0, 1.0)
        so_far = f"{100 * passed / max(1, len(decided)):.1f} % pass ({100 * low:.0f} to {100 * high:.0f} %)"
        progress.update(bar, total=len(judged), completed=sum(each is not None for each in judged), so_far=so_far)

    def preparing(done: int, total: int) -> None:
        progress.update(before, visible=True, total=total, completed=done, description=f"canonical solutions of {found.name}")

    return told, preparing
