"""Solve one problem in a conversation: write, run the examples, fix."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from artifacts.pull import pull
from cli.app.commands import Command
from cli.app.options import ProfileOption
from cli.display.screen import screen
from pipelines.watch.text import print_text
from problems.prompt import prompt_text
from problems.reading.markdown import read_markdown
from problems.synthesis.endpoint import Endpoint
from problems.synthesis.replies import EndpointDown, NoReply
from resources.home import NotReady
from resources.registry.ledger import champion_of
from resources.settings import Settings
from sandbox.sandbox import Sandbox
from serving.completion import EngineRequest, PromptTooLong, complete
from verl_jobs.agents.conversation import ROOM, Conversation, begin
from verl_jobs.agents.executor import Executor
from verl_jobs.agents.play import (
    NoReviewer,
    Reviews,
    SelfReview,
    SeparateReviewer,
    Writer,
    converse,
)
from verl_jobs.agents.tool import PythonTool
from verl_jobs.agents.writers import EndpointWriter

NONE, SELF = "none", "self"
LONGEST_OUTPUT = 2000  # maximum bytes of the tool's output
STYLES = {"Problem": "bold", "Generator": "green", "Reviewer": "cyan"} | dict.fromkeys(
    ("Executor", "Python"), "yellow"
)


@dataclass(frozen=True)
class WriterOptions:
    """Generation settings of both models."""

    tokens: int
    temperature: float
    seed: int


def solve(
    path: Path,
    *,
    model: str | None,
    endpoint: str | None,
    name: str,
    reviewer: str,
    turns: int,
    tool_calls: int,
    options: WriterOptions,
    settings: Settings,
    console: Console,
) -> int:
    """Print a conversation about one problem. Return 0 if its last program passes every example,
    else 1.

    model: a folder, by default the champion. reviewer: none, self, a folder or an endpoint. Raises
    NotReady, ProblemError and FileNotFoundError.
    """
    problem = read_markdown(path)
    if endpoint and model:
        raise NotReady("give --model or --endpoint, not both")
    try:
        with (
            writer_of(endpoint or model or champion(settings), name, options) as generator,
            reviewer_of(reviewer, generator, name, options) as reviews,
            Sandbox(settings.profile.sandbox) as sandbox,
        ):
            tool = PythonTool(sandbox, tool_calls, LONGEST_OUTPUT, partial(print_run, console))
            note = tool.request(native=False) if tool_calls else ""
            prompt = [{"role": "user", "content": prompt_text(problem)}]
            conversation = begin(problem, prompt, note)
            _print_message("Problem", conversation.messages[0]["content"], console)
            asyncio.run(
                converse(
                    [conversation],
                    generator,
                    Executor(sandbox),
                    reviews,
                    turns,
                    on_attempt=lambda now: print_attempt(now, console),
                    tool=tool,
                )
            )
    except (NoReply, EndpointDown) as error:
        raise NotReady(str(error)) from error
    count = len(conversation.attempts)
    console.print(
        f"{conversation.ended}, after {count} program{'' if count == 1 else 's'}",
        style="bold",
        highlight=False,
    )
    if conversation.ended == ROOM:
        console.print(
            "The conversation fills the model's context: give a shorter problem, fewer --turns, or "
            "a model with more positions.",
            highlight=False,
        )
    return 0 if conversation.attempts and conversation.attempts[-1].finding.solved else 1


def champion(settings: Settings) -> str:
    """Return the champion's folder. Raises NotReady without a champion."""
    entry = champion_of(settings.history)
    if entry is None:
        raise NotReady(
            "there is no champion yet: give --model FOLDER or --endpoint URL, or make a champion "
            "with `ratchet demo`"
        )
    return str(pull(settings.store, entry.path))


@contextmanager
def writer_of(where: str, name: str, options: WriterOptions) -> Iterator[Writer]:
    """Yield the writer for an endpoint's address (http...) or a folder."""
    if where.startswith(("http://", "https://")):
        with Endpoint(where) as endpoint:
            endpoint.reach()
            yield EndpointWriter(endpoint, name, options.tokens, options.temperature, options.seed)
    else:
        yield EngineWriter(Path(where).expanduser(), options)


@contextmanager
def reviewer_of(
    reviewer: str, generator: Writer, name: str, options: WriterOptions
) -> Iterator[Reviews]:
    """Yield the Reviewer: none, self, or that of a folder or an endpoint."""
    if reviewer == NONE:
        yield NoReviewer()
    elif reviewer == SELF:
        yield SelfReview(generator)
    else:
        with writer_of(reviewer, name, options) as writer:
            yield SeparateReviewer(writer)


class EngineWriter:
    """Generates with a checkpoint in the gateway's own engine, on a GPU if there is one."""

    def __init__(self, folder: Path, options: WriterOptions) -> None:
        """Load the model. Raises FileNotFoundError and NotReady."""
        from serving.engines.transformers import TransformersEngine

        if not (folder / "config.json").exists():
            raise FileNotFoundError(
                f"{folder}: no config.json: give a Hugging Face folder, or the address of an "
                "endpoint (http://...)"
            )
        try:
            self.engine, self.options = TransformersEngine(folder), options
        except (OSError, ValueError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise NotReady(
                f"cannot load a model from {folder} ({reason}): give another folder, or the "
                "address of an endpoint"
            ) from error

    async def write(self, conversations: Sequence[Conversation]) -> list[str | None]:
        return await asyncio.gather(*map(self._complete, conversations))

    async def _complete(self, conversation: Conversation) -> str | None:
        request = EngineRequest(
            conversation.messages,
            self.options.tokens,
            self.options.temperature,
            seed=self.options.seed,
        )
        try:
            [reply] = await complete(self.engine, request)
        except PromptTooLong:
            return None
        return reply.text


def print_run(console: Console, conversation: Conversation) -> None:
    """Print the last call and its output."""
    call, output = conversation.messages[-2:]
    _print_message("Generator", call["content"], console)
    _print_message("Python", output["content"], console)


def print_attempt(conversation: Conversation, console: Console) -> None:
    """Print the comment on the attempt before, the last attempt, and the Executor's finding."""
    *before, last = conversation.attempts
    if before and before[-1].comment:
        _print_message("Reviewer", before[-1].comment, console)
    _print_message("Generator", last.completion, console)
    _print_message("Executor", last.finding.text, console)


def _print_message(role: str, text: str, console: Console) -> None:
    print_text(console, f"[{STYLES[role]}]{role}[/]\n{escape(text.strip())}\n")


def command(
    problem: Annotated[
        Path,
        typer.Argument(help="A Markdown file with a statement, and examples under `## Examples`."),
    ],
    *,
    model: Annotated[
        str | None,
        typer.Option(help="A Hugging Face folder. Default, without --endpoint: the champion."),
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(help="URL of an OpenAI-compatible server, up to /v1.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the model at the endpoint.")] = "champion",
    reviewer: Annotated[
        str,
        typer.Option(help="Reviewer of the programs: none, self, a folder or an endpoint."),
    ] = "none",
    turns: Annotated[int, typer.Option(min=1, help="Maximum number of programs.")] = 3,
    tool_calls: Annotated[
        int, typer.Option(min=0, help="Programs that the model may run to see their output.")
    ] = 0,
    tokens: Annotated[int, typer.Option(min=1, help="Maximum tokens of a message.")] = 512,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="Sampling temperature; 0 is greedy decoding.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sampling.")] = 0,
    profile: ProfileOption = None,
) -> None:
    """Solve one problem in a conversation: write, run the examples, fix.

    Exits 0 if solved, 1 if not.
    """
    raise typer.Exit(
        solve(
            problem,
            model=model,
            endpoint=endpoint,
            name=name,
            reviewer=reviewer,
            turns=turns,
            tool_calls=tool_calls,
            options=WriterOptions(tokens, temperature, seed),
            settings=Settings.read(profile),
            console=screen(),
        )
    )


COMMAND = Command("Evaluate", command)
