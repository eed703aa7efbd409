"""`ratchet plan --data`, `ratchet train --lengths`: token lengths of prompts and completions, the
limits that follow, and whether the engine's memory suffices for them.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from cli.lookup.gpus import gpus_of
from pipelines.watch.text import print_text
from problems.dataset.trainable import trainable
from problems.prompt import prompt_text
from problems.schema import Problem, read_parquet
from resources.capacity import gpu_of
from resources.home import NotReady, available_memory_gib
from resources.settings import Settings
from verl_jobs.config.training import Training
from verl_jobs.planner.lengths import (
    SHARES,
    Lengths,
    limits,
    of_completions,
    of_prompts,
    of_run,
    tokenizer_of,
)
from verl_jobs.planner.memory import CPU_ROWS, generation_bytes
from verl_jobs.planner.planner import plan
from verl_jobs.planner.shapes import GIB, DoesNotFit, Gpu, shape_of
from verl_jobs.sft.start import UnfitStart


def show_lengths(
    data: str,
    *,
    run: Path | None,
    share: float,
    model: str | None,
    gpus: str | None,
    settings: Settings,
    console: Console,
) -> int:
    """Print quantiles and limits. Return 1 if completions of that length do not fit in memory.

    data: a dataset of the home (`clean_problems`) or a parquet of problems; run: the folder of a
    training. Raises FileNotFoundError, ProfileError.
    """
    limit_changes, fit = measured(
        problems_of(data, settings),
        run=run,
        share=share,
        model=model,
        gpus=gpus_of(gpus) if gpus else None,
        settings=settings,
        console=console,
    )
    changes = " ".join(f"--set {change}" for change in limit_changes)
    print_text(console, f"Limits for {share:.0%} of each kind: {changes}\n{fit}")
    return 0


def limits_to_train(
    problems: list[Problem], share: float, settings: Settings, console: Console
) -> list[str]:
    """Return the limits as changes to the profile.

    Raises NotReady if completions of that length do not fit in this machine's memory.
    """
    profile = settings.profile
    gpu = gpu_of(profile)
    try:
        changes, fit = measured(
            problems,
            run=None,
            share=share,
            model=None,
            gpus=(profile.training.ranks, gpu) if gpu else None,
            settings=settings,
            console=console,
        )
    except DoesNotFit as error:
        raise NotReady(str(error)) from error
    print_text(console, f"Limits for {share:.0%} of each kind: {', '.join(changes)}. {fit}")
    return changes


def measured(
    problems: list[Problem],
    *,
    run: Path | None,
    share: float,
    model: str | None,
    gpus: tuple[int, Gpu] | None,
    settings: Settings,
    console: Console,
) -> tuple[list[str], str]:
    """Print the quantiles. Return the limits as changes to the profile, and how completions of that
    length fit in memory. Raises DoesNotFit.
    """
    profile = settings.profile
    folder = _model(model, settings)
    kinds = _measure(folder, problems, run, fenced=bool(profile.base))
    prompt_limit, completion_limit = limits(kinds[0], kinds[1:], share)
    training = profile.training
    table = Table(
        "tokens",
        "texts",
        *(f"{part:.0%}" for part in SHARES),
        "over the profile's limit",
        box=None,
        header_style="dim",
    )
    for kind, limit in zip(
        kinds,
        (training.prompt_tokens, *[training.answer_tokens] * len(kinds[1:])),
        strict=True,
    ):
        quantiles = (str(kind.quantile(part)) for part in SHARES)
        table.add_row(
            kind.name, f"{len(kind.tokens):,}", *quantiles, f"{kind.over(limit):.1%} of {limit}"
        )
    console.print(table)
    new_limits = {"prompt_tokens": prompt_limit, "answer_tokens": completion_limit}
    try:
        fit = _memory_fit(folder, training.model_copy(update=new_limits), gpus)
    except DoesNotFit as error:
        raise DoesNotFit(f"limits {prompt_limit} + {completion_limit} tokens: {error}") from error
    return [f"training.{name}={limit}" for name, limit in new_limits.items()], fit


def problems_of(data: str, settings: Settings) -> list[Problem]:
    """Return the problems that a training would use."""
    path = Path(data)
    if not path.is_file():
        path = settings.store.require("datasets", data).path / "problems.parquet"
    return trainable(read_parquet(path), settings.profile.base)


def _model(model: str | None, settings: Settings) -> str:
    """Return the model to train: its tokenizer counts tokens, and its shape decides the memory."""
    return (
        model
        or settings.profile.base
        or str(settings.store.require("checkpoints", "base_model").path)
    )


def _measure(
    model: str, problems: list[Problem], run: Path | None, *, fenced: bool
) -> list[Lengths]:
    """Return the lengths of prompts, reference solutions, and the completions of a past run.

    fenced: whether completions are fenced code. Raises NotReady, FileNotFoundError.
    """
    try:
        tokenizer = tokenizer_of(model)
    except UnfitStart as error:
        raise NotReady(str(error)) from error
    except (OSError, ValueError) as error:
        raise NotReady(
            f"{model}: cannot load the tokenizer ({type(error).__name__}): check the id and the "
            "network, or give a local folder"
        ) from error
    solutions = [problem.solutions[0] for problem in problems if problem.solutions]
    texts = [f"```python\n{solution}\n```" if fenced else solution for solution in solutions]
    lengths = [of_prompts(tokenizer, map(prompt_text, problems))]
    lengths += [of_completions("references", tokenizer, texts)] if texts else []
    past = of_run(tokenizer, run) if run else None
    lengths += [past] if past else []
    if not lengths[0].tokens or len(lengths) == 1:
        raise FileNotFoundError(
            "nothing to measure: no problem has a reference solution, and no --run has completions"
        )
    return lengths


def _memory_fit(model: str, training: Training, gpus: tuple[int, Gpu] | None) -> str:
    """Return how completions of the training's length fit in memory. Raises DoesNotFit."""
    shape = shape_of(model)
    if training.engine != "hf":
        if gpus is None:
            return (
                "Not checked against GPU memory: `ratchet plan --data ... --gpus 8xH100` does that."
            )
        count, gpu = gpus
        fit = plan(shape, gpu, count, training)
        return (
            f"The caches of {count} x {gpu.name} hold {fit.concurrent:,} such completions at once, "
            f"{fit.rollout['KV cache'] / GIB:.1f} GiB a GPU."
        )
    rows = min(CPU_ROWS, training.problems_per_step * training.group_size)
    needed = sum(
        generation_bytes(shape, rows, training.prompt_tokens, training.answer_tokens).values()
    )
    available = available_memory_gib() * GIB
    if needed > available:
        raise DoesNotFit(
            f"{rows} completions at once need {needed / GIB:.1f} GiB for cache and weights on this "
            f"CPU; {available / GIB:.1f} GiB are available"
        )
    return (
        f"{rows} such completions at once need {needed / GIB:.2f} GiB for cache and weights on "
        f"this CPU; {available / GIB:.1f} GiB are available."
    )
