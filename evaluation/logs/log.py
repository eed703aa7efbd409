"""A log of another evaluation tool, and the scorecard made from it by one of its scores.

A completion that the tool could not judge has no score. It is left out, and never counts as wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.promotion.rate import Incomparable
from evaluation.scorecard import Scorecard, ScoredSample

MAX_UNMEASURED = 0.1  # share of tasks; with more of them missing the rest is another benchmark


class LogError(Incomparable):
    """A log that cannot be compared; the message names the file, and the fix."""


class LoggedCompletion(NamedTuple):
    """One completion of a task. scores: by name, in [0, 1]; None where the tool gave none."""

    task_id: str
    scores: Mapping[str, float | None]
    error: str = ""  # why it has no score
    program: str = ""
    timed_out: bool = False


class Log(NamedTuple):
    """One model's completions of one benchmark."""

    benchmark: str
    version: str  # of the benchmark's tasks; empty if the log does not state it
    model: str
    completions: Sequence[LoggedCompletion]
    missing: Mapping[str, str] = {}  # task -> why the log has no score of it
    hashes: Mapping[str, str] = {}  # task -> hash of its text
    default: str = ""  # score that counts if the user names none
    tool_version: str = ""  # empty if the log does not state it
    prompts: Mapping[str, str] = {}  # task -> hash of its prompt as it was sent


class LogFormat(NamedTuple):
    """A tool's log. Its content is an `Archive`, the rows of a .jsonl file, or a JSON value."""

    tool: str
    patterns: tuple[str, ...]  # names of its files in a folder
    recognizes: Callable[[Any], bool]
    read: Callable[[Any, Path], Log]  # raises LogError, KeyError, TypeError
    rerun: str  # what scores missing tasks again
    has_programs: bool = False


def scorecard_of(log: Log, names: Sequence[str], path: Path, form: LogFormat) -> Scorecard:
    """Return the completions by the one of these scores that the log has; without names, by its
    usual or its only one.

    Raises LogError for a score that is missing, ambiguous or outside [0, 1], and for a log that
    lacks more than a tenth of its tasks.
    """
    score = _chosen(log, names, path)
    unmeasured, samples, drawn = dict(log.missing), [], Counter[str]()
    for completion in log.completions:
        value = completion.scores.get(score)
        if completion.error or value is None:
            unmeasured.setdefault(completion.task_id, completion.error or "no score")
        else:
            number = drawn[completion.task_id]
            drawn[completion.task_id] += 1
            samples.append(_sample(completion, number, value))
    unmeasured = {task: why for task, why in unmeasured.items() if not drawn[task]}
    if len(unmeasured) > MAX_UNMEASURED * (len(unmeasured) + len(drawn)):
        task, why = next(iter(unmeasured.items()))
        raise LogError(
            f"{path}: {len(unmeasured)} of {len(unmeasured) + len(drawn)} tasks have no score, "
            f"the first is {task} ({_line(why)}): {form.rerun}"
        )
    return Scorecard(
        benchmark=log.benchmark,
        benchmark_version=log.version,
        harness_version=f"{form.tool}, {score}",
        checkpoint=log.model,
        checkpoint_hash="",
        sampling={},
        samples=tuple(samples),
        isolation="",
        unmeasured={task: _line(why) for task, why in unmeasured.items()},
        tool=form.tool,
        tool_version=log.tool_version,
        prompt_hashes=dict(log.prompts),
        task_hashes=dict(log.hashes),
    )


def number(value: Any) -> float | None:
    """Return a score; None for NaN and for no number, as the tools count it."""
    if not isinstance(value, int | float) or isnan(value):
        return None
    return float(value)


def only(path: Path, noun: str, names: set[str]) -> str:
    """Return the only name. Raises LogError for several."""
    if len(names) > 1:
        listed = ", ".join(sorted(names))
        raise LogError(f"{path}: {len(names)} {noun}s ({listed}): make a log for each")
    return names.pop()


def object_of(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file next to a log. Raises LogError if it is not complete."""
    try:
        content = json.loads(path.read_bytes(), object_pairs_hook=unique)
    except LogError as error:
        raise LogError(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise LogError(f"{path}: not complete ({error}): copy it again") from error
    if not isinstance(content, dict):
        raise LogError(f"{path}: no JSON object: copy it again")
    return content


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raises LogError for a key that is there twice: one of its values
    would be lost.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise LogError(f"{twice!r} is there twice: remove that of an earlier run")
    return content


def _sample(completion: LoggedCompletion, number: int, value: float) -> ScoredSample:
    return ScoredSample(
        task_id=completion.task_id,
        sample=number,
        completion=completion.program,
        program=completion.program,
        verdict="AC" if value == 1 else "TLE" if completion.timed_out else "WA",
        value=None if value in (0, 1) else value,
    )


def _chosen(log: Log, names: Sequence[str], path: Path) -> str:
    """Return the full name of the score to compare by. The part of a name before a comma will do
    where it is the only such one.
    """
    values: dict[str, list[float]] = {}
    for completion in log.completions:
        for name, value in completion.scores.items():
            values.setdefault(name, []).extend([] if value is None else [value])
    usable = [name for name, each in values.items() if each and 0 <= min(each) <= max(each) <= 1]
    if not names and log.default in usable:
        return log.default
    chosen = [each for each in usable if not names or {each, each.split(",")[0]} & {*names}]
    if len(chosen) == 1:
        return chosen[0]
    if not usable:
        raise LogError(f"{path} has no score between 0 and 1: score the log first")
    raise LogError(f"{path}: name one of its scores with --metric: {'; '.join(usable)}")


def _line(text: str) -> str:
    return " ".join(text.split())[:100]
