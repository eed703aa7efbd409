"""Test a reward, score completions with it, or start a reward of your own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.table import Table

from artifacts.atomic import write_atomic
from cli.app.commands import Command
from cli.app.options import ProfileOption, SetOption
from cli.display.screen import screen
from cli.display.wide_table import print_wide
from evaluation.completions import read
from pipelines.watch.text import print_text
from problems.schema import Problem
from resources.settings import Settings
from rewards.accounting import Accounting, FailureKind
from rewards.battery.battery import BatteryResult, run_battery
from rewards.components.efficiency import with_costs
from rewards.judging import Judged, judge
from rewards.own import Kind, OwnReward, RewardFileError, reward_of
from rewards.question import RewardTask
from rewards.score import Score
from rewards.scorer import score_batch
from rewards.tasks import TaskIndex, read_tasks
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox

app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None)
MAX_EXPLOITS, MAX_ROWS = 5, 50  # printed


TEMPLATES = Path(__file__).parent.parent / "rewards" / "templates"


def verify(file: Path | None, settings: Settings, console: Console) -> int:
    """Run the exploit battery on the reward and print the result. Return 0 if it passes, else 1.

    Raises RewardFileError.
    """
    profile = settings.profile
    reward = OwnReward(file.absolute()) if file else reward_of(profile.reward)
    with Sandbox(profile.sandbox) as sandbox:
        result = run_battery(
            reward, sandbox, reward.task if isinstance(reward, OwnReward) else "code"
        )
    _show(result, str(file or "the profile's reward"), console)
    return 0 if result.passed else 1


def new(task: str, output: Path, console: Console) -> int:
    """Write a template. Raises RewardFileError for an unknown task or an existing file."""
    if task not in get_args(Kind):
        raise RewardFileError(f"no task {task!r}: give one of {', '.join(get_args(Kind))}")
    if output.exists():
        raise RewardFileError(f"{output} exists: give another --out")
    text = (TEMPLATES / f"{task}.txt").read_text(encoding="utf-8").replace("THIS_FILE", str(output))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    print_text(console, f"{output} is written. Test it: ratchet reward verify {output}")
    return 0


def score(
    problems: Path, completions: Path, output: Path | None, settings: Settings, console: Console
) -> int:
    """Score completions of a file's problems with the profile's reward, and print each component.

    Return 1 if no completion has a score, else 0. Raises ProblemError, FileNotFoundError and
    RewardFileError.
    """
    if problems.suffix == ".py":
        raise RewardFileError(
            f"{problems} is no file of problems: a reward file goes to --set reward.file={problems}"
        )
    config = settings.profile.reward
    reward = OwnReward(Path(config.file), config) if config.file else reward_of(config)
    known, read_completions = TaskIndex(read_tasks(problems)), read(completions, "completion")
    programs = [task for task in known.tasks.values() if isinstance(task, Problem)]
    config.check_tags(programs, trains=False)
    tasks = [known.find(each.task_id, str(completions)) for each in read_completions]
    with Sandbox(settings.profile.sandbox) as sandbox:
        if config.timed:
            tasks = costed(sandbox, tasks)
        texts = [each.text for each in read_completions]
        judged = judge(sandbox, list(zip(tasks, texts, strict=True)))
    scores = score_batch(reward, judged)
    kinds = [failure_kind(each, score) for each, score in zip(judged, scores, strict=True)]
    omitted = known.tasks.keys() - {task.problem_id for task in tasks}
    rows = [
        {"task_id": each.task_id, "sample": each.sample, "reward": score.value}
        | {"verdict": str(score.verdict), "passed": score.passed, "total": score.total}
        | {"components": score.components, "gave": score.gave}
        | {"mask_sample": kind is not None, "failure_kind": kind}
        for each, score, kind in zip(read_completions, scores, kinds, strict=True)
    ]
    if output:
        write_atomic(output, "".join(json.dumps(row) + "\n" for row in rows))
    print_scores(scores, [each.task_id for each in read_completions], console)
    print_text(console, f"{Accounting.of(kinds, len(omitted))}.")
    return 0 if any(score.value is not None for score in scores) else 1


def failure_kind(judged: Judged, score: Score) -> FailureKind | None:
    """Return why a completion has no score; None if it has one."""
    if score.value is not None:
        return None
    return "infrastructure" if judged.report.verdict is Verdict.INFRA else "reward"


def costed(sandbox: Sandbox, tasks: Sequence[RewardTask]) -> list[RewardTask]:
    """Return the tasks, programs with the measured cost of their references."""
    problems = {task.problem_id: task for task in tasks if isinstance(task, Problem)}
    costs = {each.problem_id: each for each in with_costs(sandbox, [*problems.values()])}
    return [costs.get(task.problem_id, task) for task in tasks]


def print_scores(scores: Sequence[Score], names: Sequence[str], console: Console) -> None:
    """Print a row for each completion, and the means. "-": not measured, or no score."""
    scored = [score for score in scores if score.value is not None]
    figures = [{"reward": score.value or 0.0, **score.components} for score in scored]
    parts = list(dict.fromkeys(name for row in figures for name in row)) or ["reward"]
    means = {part: fmean(row[part] for row in figures if part in row) for part in parts if figures}
    rows = [
        {"task": name, "verdict": str(score.verdict), "tests": f"{score.passed} of {score.total}"}
        | _cells({"reward": score.value, **score.components}, parts)
        for name, score in zip(names[:MAX_ROWS], scores, strict=False)
    ]
    mean = {"task": "mean", "verdict": "", "tests": ""} | _cells(means, parts)
    print_wide([*rows, mean], console, None)
    more = f"; --out writes all of them, {MAX_ROWS} are shown" if len(scores) > MAX_ROWS else ""
    print_text(console, f"{len(scored)} of {len(scores)} completions have a score{more}.")


def _cells(values: Mapping[str, float | None], parts: Sequence[str]) -> dict[str, str]:
    found = {part: values.get(part) for part in parts}
    return {part: "-" if value is None else f"{value:+.3f}" for part, value in found.items()}


def _show(result: BatteryResult, name: str, console: Console) -> None:
    failed = [row for row in result.rows if not row.passed]
    if failed:
        table = Table("failed property", "observed", title=name)
        for row in failed:
            table.add_row(row.name, row.seen)
        console.print(table)
    exploits = sorted((row for row in failed if row.exploit), key=lambda row: len(row.exploit))
    for row in exploits[:MAX_EXPLOITS]:
        console.print(
            f"\nexploit: {row.name}\n{row.exploit}", markup=False, highlight=False, soft_wrap=True
        )
    console.print(
        f"{name}: {'passed' if result.passed else 'FAILED'}, "
        f"{len(result.rows) - len(failed)} of {len(result.rows)} properties hold",
        style="bold",
    )
    print_text(console, f"speed: {result.speed}\nhash: {result.hash}")


@app.command("verify")
def reward_verify(
    file: Annotated[
        Path | None,
        typer.Argument(help="A reward file. Default: the reward of the profile."),
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """Run the exploit battery on a reward. Exits 0 if it passes, else 1."""
    raise typer.Exit(verify(file, Settings.read(profile), screen()))


@app.command("score")
def reward_score(
    problems: Annotated[Path, typer.Argument(help="File of problems, or of questions.")],
    completions: Annotated[
        Path,
        typer.Option(help="JSON lines with task_id and completion; of a task as many as you like."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write each score with its components, as JSON lines.")
    ] = None,
    profile: ProfileOption = None,
    change: SetOption = None,
) -> None:
    """Score given completions with the profile's reward, and show each component."""
    settings = Settings.read(profile, change or ())
    raise typer.Exit(score(problems, completions, out, settings, screen()))


@app.command("new")
def reward_new(
    task: Annotated[str, typer.Option(help="code, math or qa.")],
    out: Annotated[Path, typer.Option(help="The new file.")],
) -> None:
    """Write a template for a reward of your own; it passes the exploit battery unchanged."""
    raise typer.Exit(new(task, out, screen()))


COMMAND = Command("Train", app)
