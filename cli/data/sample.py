"""`ratchet data sample`: a model writes programs for the problems without a reference."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from artifacts.atomic import write_atomic
from artifacts.hashing import hash_data
from cli.data.show import READS
from cli.evaluate.progress import progress_bar
from evaluation.generation.completion_sources import Source, complete
from evaluation.sampling import Prompt, Sampling
from pipelines.watch.text import print_text
from problems.catalogue import add_source, pinned_sources
from problems.columns import ProblemError
from problems.prompt import prompt_messages, prompt_text
from problems.schema import Problem
from problems.sources.registry import load
from problems.verification.problem_check import judges
from resources.home import Home

STOP = "\n```"  # ends the program of a base model


def data_sample(
    name: str, source: Source, sampling: Sampling, out: Path | None, home: Home, console: Console
) -> int:
    """Write the samples as JSON lines, in place of the source's file of samples.

    out: by default a file in the home, named after its content. Empty outputs are left out. Raises
    ProblemError for an unknown source, one without such problems and a model that writes nothing;
    MissingCompletions and EndpointDown.
    """
    places = pinned_sources(home.path)
    if name not in places:
        raise ProblemError(f"{name!r} was not added", "run `ratchet data add` first", "sources")
    place = replace(places[name], samples=None)  # the earlier file may be gone
    problems = [problem for problem in load(name, place).problems if _unsolved(problem)]
    if not problems:
        raise ProblemError("every problem has a reference", "no samples are needed", name)
    if not source.chats:
        sampling = sampling.model_copy(update={"stop": (*sampling.stop, STOP)})
    prompts = [_prompt(problem, source.chats) for problem in problems]
    with progress_bar(console) as progress:
        bar = progress.add_task(f"samples for {name}", total=None, so_far="")
        outputs = complete(
            prompts,
            source,
            sampling,
            home.path / "answers",
            lambda done, of: progress.update(bar, completed=done, total=of),
        )
    rows = [
        {"problem_id": problems[at // sampling.n].problem_id, "completion": output.text}
        for at, output in enumerate(outputs)
        if output.text.strip()
    ]
    if not rows:
        raise ProblemError("every output is empty", "try another model or more new tokens", name)
    path = out or home.path / "samples" / f"{name}-{hash_data(rows)[:8]}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, "".join(json.dumps(row) + "\n" for row in rows))
    add_source(home.path, name, replace(place, samples=path))
    print_text(
        console,
        f"{len(rows)} samples for {len(problems)} problems of {name} in {path}; {READS} "
        "verifies the problems",
    )
    return 0


def _unsolved(problem: Problem) -> bool:
    return not problem.solutions and judges(problem) and not problem.gated


def _prompt(problem: Problem, chats: bool) -> Prompt:
    return prompt_messages(problem) if chats else f"{prompt_text(problem)}\n\n```python\n"
