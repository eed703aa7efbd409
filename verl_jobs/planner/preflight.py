"""Preflight checks of a training before its hardware is taken: rows, start policy, disk.

In: a `TrainingJob`. Out: nothing, or `CannotTrain`. `verl_jobs/sft/start.py` checks the start
policy. `resources/ray/job.py` runs the checks before it starts Ray; they write nothing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import Any

from problems.cleaning.gating import gated_as
from problems.columns import ProblemError
from problems.schema import Problem
from rewards.question import task_from_ground_truth
from verl_jobs.adapter.versions import UnsupportedVerl, installed
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob
from verl_jobs.planner.lengths import length_of, tokenizer_of
from verl_jobs.planner.shapes import GIB
from verl_jobs.sft.start import check_start, stored_shapes


class CannotTrain(ValueError):
    """A preflight check failed. One line: what is wrong, in which file, row or key, and the fix."""


def check(job: TrainingJob) -> None:
    """Raise CannotTrain or UnfitStart at the first fault."""
    check_settings(job.training)
    rows = check_rows(Path(job.train), shared=job.reward.shared)
    check_rows(Path(job.validation))
    if rows < job.training.problems_per_step:
        raise CannotTrain(
            f"{job.train} holds {rows} problems, fewer than the "
            f"{job.training.problems_per_step} of a step: "
            "add problems, or lower training.problems_per_step"
        )
    start = Path(job.start)
    if start.is_dir():  # otherwise a hub id, which the engine downloads
        t = job.training
        check_start(start, tokens=t.prompt_tokens + t.response_tokens, frozen=t.frozen, lora=t.lora)
        tokenizer = tokenizer_of(str(start))
        check_lengths(_chats(Path(job.train)), tokenizer, t, job.train)
        for file in (job.train, job.validation):
            check_roles(_chats(Path(file)), tokenizer, file)
        check_disk(job.path, t, parameters_of(start))


def check_lengths(
    chats: Iterable[list[dict[str, str]]], tokenizer: Any, training: Training, place: object
) -> None:
    """Raise CannotTrain if too few prompts fit for a step: verl leaves longer ones out.

    Also for a chat that the template refuses. Reads no more chats than a step needs. place: where
    they come from, for the message.
    """
    limit, fit, lengths = training.prompt_tokens, 0, list[int]()
    for chat in chats:
        lengths.append(_length(tokenizer, chat, place))
        fit += lengths[-1] <= limit
        if fit >= training.problems_per_step:
            return
    if fit == len(lengths):
        raise CannotTrain(
            f"{place}: {fit} problems to train on, fewer than the {training.problems_per_step} of "
            "a step: add problems, or lower training.problems_per_step"
        )
    raise CannotTrain(
        f"{place}: {fit} prompts have at most {limit} tokens, fewer than the "
        f"{training.problems_per_step} of a step; the shortest has {min(lengths)}: "
        "raise training.prompt_tokens (`ratchet plan --data clean_problems` measures them)"
    )


def check_roles(chats: Iterable[list[dict[str, str]]], tokenizer: Any, place: object) -> None:
    """Raise CannotTrain for a chat that the template refuses. Chats of the same roles in the same
    order are tried once. place: see `check_lengths`.
    """
    for chat in {tuple(each["role"] for each in chat): chat for chat in chats}.values():
        _length(tokenizer, chat, place)


def _length(tokenizer: Any, chat: list[dict[str, str]], place: object) -> int:
    try:
        return length_of(tokenizer, chat)
    except ProblemError as error:
        raise CannotTrain(f"{place}: {error}") from error


def _chats(path: Path) -> list[list[dict[str, str]]]:
    import pyarrow.parquet as pq

    column = pq.read_table(path, columns=["prompt"])["prompt"]
    return list(column.to_pylist())


def check_settings(training: Training) -> None:
    """Raise CannotTrain for settings that cannot be run.

    They are a trace of steps beyond the last, and a version of verl without an adapter.
    """
    try:
        installed()
    except UnsupportedVerl as error:
        raise CannotTrain(str(error)) from error
    if beyond := [step for step in training.trace if step > training.steps]:
        raise CannotTrain(
            f"training.trace: step {beyond[0]} is after the last step, {training.steps}: choose "
            "earlier steps"
        )


def check_rows(path: Path, *, shared: bool = True) -> int:
    """Return the number of rows.

    Raises CannotTrain for a row without a ground truth that a reward understands, and for a gated
    problem. shared: whether the reward accepts verdicts with trust `shared`; without it no
    completion of a problem with unittests earns a reward.
    """
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, ValueError) as error:
        raise CannotTrain(
            f"{path} is not a readable Parquet file: {' '.join(str(error).split())[:200]}"
        ) from error
    missing = [
        name for name in ("data_source", "prompt", "reward_model") if name not in table.column_names
    ]
    if missing:
        raise CannotTrain(
            f"{path} has no column {', '.join(missing)}: write it with "
            "problems.dataset.rl_parquet.write_verl"
        )
    for number, cell in enumerate(table.column("reward_model").to_pylist()):
        truth = (cell or {}).get("ground_truth")
        if not truth:
            raise CannotTrain(
                f"{path}, row {number}: reward_model has no ground_truth: add it, or remove the row"
            )
        try:
            task = task_from_ground_truth(truth)
        except ValueError as error:
            raise CannotTrain(
                f"{path}, row {number}: ground_truth is not readable by a reward: {error}"
            ) from error
        if isinstance(task, Problem) and (task.gated or gated_as(task)):
            gated_name = gated_as(task) or task.problem_id
            raise CannotTrain(
                f"{path}, row {number}: {task.problem_id} is gated ({gated_name}), for evaluation "
                "only: remove the row"
            )
        if isinstance(task, Problem) and task.kind.shared and not shared:
            raise CannotTrain(
                f"{path}, row {number}: {task.problem_id} has tests of style {task.style}, "
                "whose verdicts have trust `shared`, and reward.shared is off: no completion "
                "would earn a reward. Set reward.shared: true, or remove the row"
            )
    return int(table.num_rows)


def parameters_of(folder: Path) -> int:
    """Return the number of parameters, read from the headers of the safetensors files."""
    return sum(prod(shape) for shape in stored_shapes(folder).values())


def check_disk(folder: Path, training: Training, parameters: int) -> None:
    """Raise CannotTrain if the run's saves do not fit on the disk.

    folder: of the run, existing or not; its present files count as free, even while they change. A
    save holds weights and two moments in fp32, and the same of a critic; each candidate holds
    weights, at most in fp32. One additional save is being written.
    """
    t, saves_in_total = training, training.steps // training.save_every
    saves = min(
        saves_in_total,
        t.keep.last + t.keep.best + (t.steps // t.keep.every if t.keep.every else 0) + 1,
    )
    needed = parameters * saves * (12 + 12 * t.method.critic + 4)
    existing = folder
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free + _bytes(folder)
    if free < needed:
        raise CannotTrain(
            f"{existing} has {free / GIB:.1f} GiB of free disk, and {saves} saves and candidates "
            f"of {parameters:,} parameters need {needed / GIB:.1f}: "
            "free some, or keep fewer (training.keep)"
        )


def _bytes(folder: Path) -> int:
    """Return the size of all files below; a file that is removed meanwhile counts 0."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(parent, name).lstat().st_size
    return total
