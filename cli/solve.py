"""Solve one problem in a conversation: write, run the examples, fix."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from cli.options import (
    ProfileOption,
)
from problems.prompt import prompt_text
from problems.sources.markdown import read_markdown
from problems.synthesis.endpoint import Endpoint
from problems.synthesis.replies import EndpointDown, NoReply
from resources.home import NotReady
from resources.settings import Settings
from sandbox.sandbox import Sandbox
from serving.engines import EngineRequest, TooLong
from verl_jobs.agents.conversation import Conversation, begin
from verl_jobs.agents.executor import Executor
from verl_jobs.agents.play import (
    NoReviewer,
    Reviews,
    SelfReview,
    SeparateReviewer,
    Writer,
    converse,
)
from verl_jobs.agents.writers import EndpointWriter

GROUP = "Evaluate"


NOBODY, ITSELF = "none", "self"


STYLES = {"Problem": "bold", "Generator": "green", "Executor": "yellow", "Reviewer": "cyan"}


@dataclass(frozen=True)
class ModelOptions:
    """How models are asked."""

    tokens: int
    temperature: float
    seed: int


def solve(
    path: Path,
    model: str | None,
    endpoint: str | None,
    name: str,
    reviewer: str,
    turns: int,
    speech: ModelOptions,
    settings: Settings,
    console: Console,
) -> int:
    """Exits 0 where the last program passes every example, 1 where not.

    model: a folder; by default the champion. reviewer: none, self, a folder or an endpoint. Raises
    NotReady, ProblemError and FileNotFoundError.
    """
    problem = read_markdown(path)
    if endpoint and model:
        raise NotReady("give --model or --endpoint, not both")
    conversation = begin(problem, [{"role": "user", "content": prompt_text(problem)}])
    _say("Problem", conversation.messages[0]["content"], console)
    confined = settings.profile.sandbox
    try:
        with (
            writer_of(endpoint or model or champion(settings), name, speech) as generator,
            reviewer_of(reviewer, generator, name, speech) as reviews,
            Sandbox(confined) as sandbox,
        ):
            asyncio.run(
                converse(
                    [conversation],
                    generator,
                    Executor(sandbox),
                    reviews,
                    turns,
                    lambda now: tell(now, console),
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
    return 0 if conversation.attempts and conversation.attempts[-1].finding.solved else 1


def champion(settings: Settings) -> str:
    """The champion's folder. Raises NotReady where there is none."""
    entry = settings.ledger.champion()
    if entry is None:
        raise NotReady(
            "there is no champion yet: give --model FOLDER or --endpoint URL, or make one "
            "with `ratchet demo`"
        )
    return entry.path


@contextmanager
def writer_of(where: str, name: str, speech: ModelOptions) -> Iterator[Writer]:
    """An endpoint's address (it begins with http), or a folder."""
    if where.startswith(("http://", "https://")):
        with Endpoint(where) as endpoint:
            endpoint.reach()
            yield EndpointWriter(endpoint, name, speech.tokens, speech.temperature, speech.seed)
    else:
        yield EngineWriter(Path(where).expanduser(), speech)


@contextmanager
def reviewer_of(who: str, generator: Writer, name: str, speech: ModelOptions) -> Iterator[Reviews]:
    if who == NOBODY:
        yield NoReviewer()
    elif who == ITSELF:
        yield SelfReview(generator)
    else:
        with writer_of(who, name, speech) as writer:
            yield SeparateReviewer(writer)


class EngineWriter:
    """A checkpoint by the gateway's own engine: on a GPU where there is one."""

    def __init__(self, folder: Path, speech: ModelOptions) -> None:
        from serving.engines.hf import HfEngine

        if not (folder / "config.json").exists():
            raise FileNotFoundError(
                f"{folder}: no config.json there: give a Hugging Face folder, or the address "
                "of an endpoint (http://...)"
            )
        try:
            self.engine, self.speech = HfEngine(folder), speech
        except (OSError, ValueError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise NotReady(
                f"{folder} holds no model that can answer ({reason}): give another folder, or "
                "the address of an endpoint"
            ) from error

    async def write(self, conversations: Sequence[Conversation]) -> list[str | None]:
        return [self._answer(conversation) for conversation in conversations]

    def _answer(self, conversation: Conversation) -> str | None:
        try:
            return self.engine.complete(
                EngineRequest(
                    conversation.messages,
                    self.speech.tokens,
                    self.speech.temperature,
                    seed=self.speech.seed,
                )
            ).text
        except TooLong:
            return None


def tell(conversation: Conversation, console: Console) -> None:
    """The last attempt, each voice under its name, after the comment that led to it."""
    *before, last = conversation.attempts
    if before and before[-1].comment:
        _say("Reviewer", before[-1].comment, console)
    _say("Generator", last.completion, console)
    _say("Executor", last.finding.text, console)


def _say(who: str, text: str, console: Console) -> None:
    console.print(
        f"[{STYLES[who]}]{who}[/]\n{escape(text.strip())}\n", highlight=False, soft_wrap=True
    )


def command(
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
    """Solve one problem in a conversation: write, run the examples, fix.

    Exits 0 if solved, 1 if not.
    """
    raise typer.Exit(
        solve(
            problem,
            model,
            endpoint,
            name,
            reviewer,
            turns,
            ModelOptions(tokens, temperature, seed),
            Settings.read(profile),
            Console(),
        )
    )
