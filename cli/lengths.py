"""`ratchet plan --data`, `ratchet train --lengths`: lengths of prompts and completions, the limits
that follow, and whether the engine holds them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from cli.gpus import gpus_of
from problems.dataset.trainable import trainable
from problems.prompt import prompt_text
from problems.schema import Problem, read_parquet
from resources.capacity import gpu_of
from resources.home import NotReady, available_memory_gib
from resources.settings import Settings
from verl_jobs.config.training import Training
from verl_jobs.planner.lengths import SHARES, Lengths, limits, of_completions, of_prompts, of_run
from verl_jobs.planner.memory import CPU_ROWS, generation_bytes
from verl_jobs.planner.planner import plan
from verl_jobs.planner.shapes import GIB, DoesNotFit, Gpu, shape_of


def show_lengths(
    data: str,
    run: Path | None,
    share: float,
    model: str | None,
    gpus: str | None,
    settings: Settings,
    console: Console,
) -> int:
    """Print quantiles and limits. Exits 0, or 1 if the cache of completions of that length does not
    fit.

    data: a dataset of the home (`clean_problems`) or a parquet in our schema; run: a training's
    folder.
    Raises FileNotFoundError, ProfileError.
    """
    try:
        changes_list, text = measured(
            data,
            run,
            share,
            model,
            gpus_of(gpus) if gpus else None,
            settings,
            console,
        )
    except DoesNotFit as error:
        console.print(f"error: {error}", style="bold red", soft_wrap=True, highlight=False)
        return 1
    changes = " ".join(f"--set {change}" for change in changes_list)
    console.print(
        f"Limits that hold {share:.0%} of each kind: {changes}\n{text}",
        soft_wrap=True,
        highlight=False,
    )
    return 0


def changes_to_train(data: str, share: float, settings: Settings, console: Console) -> list[str]:
    """Return the limits as changes to the profile. Raises NotReady, with the numbers, if this
    machine's engine does not hold such completions.
    """
    profile = settings.profile
    gpu = gpu_of(profile)
    try:
        changes, text = measured(
            data,
            None,
            share,
            None,
            (profile.training.ranks, gpu) if gpu else None,
            settings,
            console,
        )
    except DoesNotFit as error:
        raise NotReady(str(error)) from error
    console.print(
        f"Trained with {' and '.join(changes)}, which hold {share:.0%} of each kind. {text}",
        soft_wrap=True,
        highlight=False,
    )
    return changes


def measured(
    data: str,
    run: Path | None,
    share: float,
    model: str | None,
    gpus: tuple[int, Gpu] | None,
    settings: Settings,
    console: Console,
) -> tuple[list[str], str]:
    """Print the quantiles; return the limits as changes to the profile, and what holds such
    completions. Raises DoesNotFit.
    """
    profile = settings.profile
    folder = _model(model, settings)
    kinds = _measure(folder, _problems(data, settings), run, fenced=bool(profile.base))
    prompt, answer = limits(kinds[0], kinds[1:], share)
    t = profile.training
    table = Table(
        "tokens",
        "texts",
        *(f"{part:.0%}" for part in SHARES),
        "longer than the profile's",
        box=None,
        header_style="dim",
    )
    for kind, limit in zip(
        kinds, (t.prompt_tokens, *[t.answer_tokens] * len(kinds[1:])), strict=True
    ):
        quantiles = (str(kind.quantile(part)) for part in SHARES)
        table.add_row(
            kind.name, f"{len(kind.tokens):,}", *quantiles, f"{kind.over(limit):.1%} of {limit}"
        )
    console.print(table)
    needed = t.model_copy(update={"prompt_tokens": prompt, "answer_tokens": answer})
    try:
        text = _cache(folder, needed, gpus)
    except DoesNotFit as error:
        raise DoesNotFit(f"limits of {prompt} + {answer} tokens: {error}") from error
    return [f"training.prompt_tokens={prompt}", f"training.answer_tokens={answer}"], text


def _problems(data: str, settings: Settings) -> list[Problem]:
    path = Path(data)
    if not path.is_file():
        path = settings.store.require("datasets", data).path / "problems.parquet"
    return trainable(read_parquet(path), settings.profile.base)


def _model(model: str | None, settings: Settings) -> str:
    """What is to be trained: its tokenizer counts, and its shape takes the memory."""
    return (
        model
        or settings.profile.base
        or str(settings.store.require("checkpoints", "base_model").path)
    )


def _measure(
    model: str, problems: list[Problem], run: Path | None, *, fenced: bool
) -> list[Lengths]:
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise NotReady(
            f"{model}: no tokenizer to be had ({type(error).__name__}): check the id and the "
            "network, or name a local folder"
        ) from error
    solutions = [problem.solutions[0] for problem in problems if problem.solutions]
    texts = [f"```python\n{solution}\n```" if fenced else solution for solution in solutions]
    lengths = [of_prompts(tokenizer, map(prompt_text, problems))]
    lengths += [of_completions("references", tokenizer, texts)] if texts else []
    past = of_run(tokenizer, run) if run else None
    lengths += [past] if past else []
    if not lengths[0].tokens or len(lengths) == 1:
        raise FileNotFoundError(
            "nothing to measure: no problem with a reference solution, and no answers of a past run"
        )
    return lengths


def _cache(model: str, training: Training, gpus: tuple[int, Gpu] | None) -> str:
    """What holds the answers of that length. Raises DoesNotFit with the numbers."""
    shape = shape_of(model)
    if training.engine != "hf":
        if gpus is None:
            return (
                "Whether the engine's cache holds such answers was not asked: `ratchet plan "
                "--data ... --gpus 8xH100` does."
            )
        count, gpu = gpus
        fit = plan(shape, gpu, count, training)
        return (
            f"The caches of {count} x {gpu.name} hold {fit.concurrent:,} such answers at once, "
            f"{fit.rollout['KV cache'] / GIB:.1f} GiB a GPU."
        )
    rows = min(CPU_ROWS, training.problems_per_step * training.group_size)
    needed = sum(
        generation_bytes(shape, rows, training.prompt_tokens, training.answer_tokens).values()
    )
    available = available_memory_gib() * GIB
    if needed > available:
        raise DoesNotFit(
            f"{rows} answers at once take {needed / GIB:.1f} GiB of cache and weights on this "
            f"CPU, {available / GIB:.1f} are available"
        )
    return (
        f"{rows} such answers at once take {needed / GIB:.2f} GiB of cache and weights on this "
        f"CPU, {available / GIB:.1f} are available."
    )
