"""Test a reward on known completions and hacks, or start a reward of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.table import Table

from cli.app.commands import Command
from cli.app.options import ProfileOption
from pipelines.watch.text import print_text
from resources.settings import Settings
from rewards.battery.battery import BatteryResult, run_battery
from rewards.own import Kind, OwnReward, RewardFileError, reward_of
from sandbox.sandbox import Sandbox

app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None)
MAX_EXPLOITS = 5  # printed


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
        raise RewardFileError(f"{output} exists: give another --output")
    text = (TEMPLATES / f"{task}.txt").read_text(encoding="utf-8").replace("THIS_FILE", str(output))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    print_text(console, f"{output} is written. Test it: ratchet reward verify {output}")
    return 0


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
    raise typer.Exit(verify(file, Settings.read(profile), Console()))


@app.command("new")
def reward_new(
    task: Annotated[str, typer.Option(help="code, math or qa.")],
    output: Annotated[Path, typer.Option(help="The new file.")],
) -> None:
    """Write a template for a reward of your own; it passes the exploit battery unchanged."""
    raise typer.Exit(new(task, output, Console()))


COMMAND = Command("Train", app)
