"""Show completions of one training step, with verdicts and reward components."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from cli.app.commands import Command
from cli.app.options import JsonOption, RunArgument
from cli.display.screen import code, print_heading, print_json, screen
from cli.lookup.runs import folder_of
from resources.home import Home
from resources.settings import Settings
from verl_jobs import samples


def show_samples(
    run: str | None,
    step: int | None,
    *,
    worst: bool,
    best: bool,
    count: int,
    home: Home,
    console: Console,
    as_json: bool = False,
) -> int:
    """Print completions of a training step with verdict and reward components, in the order of the
    batch or by reward. Raises FileNotFoundError for an unknown run or step, and CorruptArtifact.
    """
    folder = folder_of(run, home)
    steps = samples.steps(folder)
    chosen = step if step is not None else steps[-1] if steps else 0
    step_samples = samples.read(folder, chosen)
    if worst or best:
        step_samples.sort(key=lambda sample: (sample.reward, sample.problem_id), reverse=best)
    if as_json:
        print_json([asdict(sample) for sample in step_samples[:count]])
        return 0
    verdicts = {
        verdict: sum(sample.verdict == verdict for sample in step_samples)
        for verdict in sorted({sample.verdict for sample in step_samples})
    }
    cut = sum(sample.cut for sample in step_samples)
    truncated = f"; {cut} truncated" if cut else ""
    console.print(
        f"{folder.parents[1].name}, step {chosen}: {len(step_samples)} completions, "
        f"{', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}{truncated}"
    )
    if weights := sorted({sample.weights[:12] for sample in step_samples if sample.weights}):
        console.print(f"sampled by the weights {', '.join(weights)}", highlight=False)
    for sample in step_samples[:count]:
        truncated = ", [yellow]truncated[/]" if sample.cut else ""
        trace = ", ".join(f"{name} {value:+.2f}" for name, value in sample.trace.items())
        print_heading(
            console,
            f"{sample.problem_id}  [bold]{sample.verdict}[/]  reward {sample.reward:+.2f} "
            f"({trace}){truncated}",
        )
        console.print(code(sample.answer, console))
    return 0


def command(
    run: RunArgument = None,
    step: Annotated[int | None, typer.Option(help="Training step. Default: the last.")] = None,
    worst: Annotated[bool, typer.Option("--worst", help="Lowest reward first.")] = False,
    best: Annotated[bool, typer.Option("--best", help="Highest reward first.")] = False,
    count: Annotated[int, typer.Option(min=1, help="Number of completions.")] = 5,
    as_json: JsonOption = False,
) -> None:
    """Show completions of one training step, with verdicts and reward components."""
    if worst and best:
        raise typer.BadParameter("give only one", param_hint="--worst, --best")

    raise typer.Exit(
        show_samples(
            run,
            step,
            worst=worst,
            best=best,
            count=count,
            home=Settings.read().home,
            console=screen(),
            as_json=as_json,
        )
    )


COMMAND = Command("Train", command)
