"""Early stopping: rules that end a training, each with its reason.

Existing checkpoints stay, and the best one is the run's result. The rules read verl's metrics, one
row per step, and return a reason or None. `verl_jobs/trainer/replay_buffer.py` applies them before
each step, in the trainer's process.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from artifacts.atomic import write_atomic
from rewards import watch
from verl_jobs.config.checkpoints import StopSettings
from verl_jobs.config.training import Training
from verl_jobs.job import VALIDATION, TrainingJob, candidates, metrics
from verl_jobs.metrics.verl_keys import ENTROPY, FROM_START, OF_UPDATE

History = Sequence[Mapping[str, Any]]
FINITE = ("actor/pg_loss", "actor/grad_norm", "critic/score/mean", "critic/vf_loss")
SMOOTH = 3  # steps to average over


class EarlyStop(Exception):
    """The training stops early; the message is the reason."""


def stop_reason(history: History, stop: StopSettings) -> str | None:
    """Return why to stop now, or None.

    history: in order of steps; step 0 is the validation before training.
    """
    steps = [row for row in history if row["step"] > 0]
    for rule in (_not_finite, _kl_too_high, _collapsed, _gap, _no_progress):
        if steps and (text := rule(history if rule is _no_progress else steps, stop)):
            return text
    return None


def _not_finite(steps: History, _: StopSettings) -> str | None:
    last = steps[-1]
    broken = [key for key in FINITE if key in last and not math.isfinite(float(last[key]))]
    return f"{broken[0]} is {last[broken[0]]} at step {last['step']}" if broken else None


def _kl_too_high(steps: History, stop: StopSettings) -> str | None:
    for key in (*FROM_START, OF_UPDATE):
        values = [abs(float(row[key])) for row in steps[-SMOOTH:] if key in row]
        if len(values) == SMOOTH and fmean(values) > stop.kl:
            return f"KL: {key} is {fmean(values):.3g} over {SMOOTH} steps, above {stop.kl:g}"
    return None


def _collapsed(steps: History, stop: StopSettings) -> str | None:
    values = [float(row[ENTROPY]) for row in steps if ENTROPY in row]
    if len(values) < 2 * SMOOTH:
        return None
    first, last = fmean(values[:SMOOTH]), fmean(values[-SMOOTH:])
    return (
        f"entropy collapsed: {first:.3g} in the first {SMOOTH} steps, {last:.3g} in the last"
        if last < stop.entropy * first
        else None
    )


def _gap(steps: History, _: StopSettings) -> str | None:
    growth = watch.growth(steps)
    return f"reward hacking: {growth.reason}" if growth.growing else None


def _no_progress(history: History, stop: StopSettings) -> str | None:
    scored = [(row["step"], float(row[VALIDATION])) for row in history if VALIDATION in row]
    if not stop.patience or len(scored) <= stop.patience:
        return None
    best = max(range(len(scored)), key=lambda at: (scored[at][1], -at))
    waited = len(scored) - 1 - best
    step, score = scored[best]
    return (
        f"no progress: {waited} validations since the best, {100 * score:.1f} % at step {step}"
        if waited >= stop.patience
        else None
    )


def check(folder: Path, await_save: Callable[[], None]) -> None:
    """Raise EarlyStop and write the reason to the job's `stopped.json`.

    await_save: waits for the save that is still being written, since this process ends with the
    training. Raises RuntimeError if there is no checkpoint to keep yet.
    """
    job, history = TrainingJob.read(folder / "job.json"), metrics(folder)
    due = job.validations()
    history = [
        row
        if row["step"] in due
        else {key: value for key, value in row.items() if key != VALIDATION}
        for row in history
    ]
    if text := stop_reason(per_token(history, job.training), job.training.stop):
        await_save()
        if not candidates(folder):
            raise RuntimeError(f"the training failed before its first checkpoint: {text}")
        write_atomic(
            folder / "stopped.json", json.dumps({"step": history[-1]["step"], "reason": text})
        )
        raise EarlyStop(text)


def per_token(history: History, training: Training) -> History:
    """Return the history with KL and entropy per token.

    Where verl sums the loss over a completion's tokens and divides by the maximum length, it does
    the same with KL and entropy; this undoes it.
    """
    if not training.method.sums_over_tokens:
        return history
    keys, longest = (FROM_START[0], ENTROPY), training.response_tokens
    lengths = [float(row.get("response_length/mean", 0.0)) or longest for row in history]
    return [
        row | {key: row[key] * longest / mean for key in keys if key in row}
        for row, mean in zip(map(dict, history), lengths, strict=True)
    ]
