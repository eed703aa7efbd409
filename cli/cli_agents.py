"""The commands `ratchet solve` and `ratchet reviewer ...`. Thin: each loads what it needs when it is called."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.cli_data import ProfileOption

reviewer = typer.Typer(
    help="The Reviewer of conversations: make records, teach it from them, train it by what its comments change.",
    no_args_is_help=True,
)


def solve(
    problem: Annotated[
        Path,
        typer.Argument(
            help="A Markdown file: a statement, and examples under a heading `## Examples`."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(help="A Hugging Face folder; with neither this nor --endpoint the champion."),
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(help="An OpenAI-compatible server, up to /v1.")
    ] = None,
    name: Annotated[str, typer.Option(help="The model's name at the endpoint.")] = "champion",
    reviewer: Annotated[
        str,
        typer.Option(help="Who comments between programs: none, self, a folder or an endpoint."),
    ] = "none",
    turns: Annotated[int, typer.Option(min=1, help="Programs it may write at most.")] = 3,
    tokens: Annotated[int, typer.Option(min=1, help="Longest message, in tokens.")] = 512,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="0 takes the likeliest token each time.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws at a higher temperature.")] = 0,
    profile: ProfileOption = None,
) -> None:
    """Solves a problem in conversation: a model writes, the sandbox runs the examples, the model mends. Exits 0 solved, 1 not."""
    from cli.solve import Speech, solve

    raise typer.Exit(
        solve(
            problem,
            model,
            endpoint,
            name,
            reviewer,
            turns,
            Speech(tokens, temperature, seed),
            profile,
            Console(),
        )
    )


@reviewer.command("records")
def reviewer_records(
    to: Annotated[Path, typer.Option("--to", help="The parquet to write.")],
    profile: ProfileOption = None,
) -> None:
    """Programs that fail an example, each with what is wrong with it, from the clean problems of this home."""
    from cli.reviewer import records

    raise typer.Exit(records(to, profile, Console()))


@reviewer.command("teach")
def reviewer_teach(
    start: Annotated[Path, typer.Option("--from", help="A Hugging Face folder.")],
    records: Annotated[Path, typer.Option(help="What `ratchet reviewer records` wrote.")],
    to: Annotated[Path, typer.Option("--to", help="Folder for the Reviewer.")],
    steps: Annotated[int, typer.Option(min=1, help="Optimizer steps.")] = 200,
    learning_rate: Annotated[
        float, typer.Option(min=1e-12, max=1.0, help="At its highest.")
    ] = 1e-3,
    batch: Annotated[int, typer.Option(min=1, help="Records a step.")] = 16,
) -> None:
    """Supervised training on review records, by verl's SFT trainer."""
    from cli.reviewer import teach
    from verl_jobs.agents.supervised import Lessons

    raise typer.Exit(
        teach(
            start,
            records,
            to,
            Lessons(steps=steps, learning_rate=learning_rate, batch=batch),
            Console(),
        )
    )


@reviewer.command("reinforce")
def reviewer_reinforce(
    start: Annotated[
        Path, typer.Option("--from", help="The Reviewer to begin with, a Hugging Face folder.")
    ],
    generator: Annotated[
        str, typer.Option(help="Who writes and mends, and is not trained: a folder or an endpoint.")
    ],
    to: Annotated[Path, typer.Option("--to", help="Folder for the better Reviewer.")],
    profile: ProfileOption = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A change to the profile, section.key=value; may be given again."
        ),
    ] = None,
) -> None:
    """Reinforcement learning: a comment is worth what it changes in the verdict, against the same mend without it."""
    from cli.reviewer import reinforce

    where = (
        generator if generator.startswith("http") else str(Path(generator).expanduser().absolute())
    )
    told = ["training.agents.trains=reviewer", f"training.agents.generator={where}"]
    os.environ["RATCHET_SET"] = "\n".join([*(change or []), *told])
    raise typer.Exit(reinforce(start, to, profile, Console()))
