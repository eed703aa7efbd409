"""Logs of Inspect: `.eval` files, whose summaries hold every sample's scores, and JSON logs.

Epochs are completions of one task. Letters count as Inspect counts them: C is 1, P is 0.5, I and N
are 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import isnan
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_data
from evaluation.logs.archive import Archive
from evaluation.logs.log import Log, LogError, LogFormat, LoggedCompletion

RERUN = "run `inspect eval-retry` on it"
WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
TEXT = 500  # characters of a task's text that are compared: summaries truncate long ones


def recognizes(content: Any) -> bool:
    if isinstance(content, Archive):
        return "_journal/start.json" in content.members or "header.json" in content.members
    return isinstance(content, dict) and {"status", "eval", "version"} <= content.keys()


def read(content: Any, path: Path) -> Log:
    if isinstance(content, Archive):
        if "header.json" not in content.members:
            raise LogError(f"{path}: the evaluation has not ended: {RERUN}")
        header = json.loads(content.read("header.json"))
        samples = json.loads(content.read("summaries.json"))
    else:
        header, samples = content, content.get("samples") or []
    if header["status"] != "success":
        raise LogError(f"{path}: the evaluation ended with status {header['status']}: {RERUN}")
    if header.get("invalidated"):
        raise LogError(f"{path}: some of its samples are marked invalid: {RERUN}")
    about = header["eval"]
    judged_errors = bool(about["config"].get("score_on_error"))
    completions = [_completion(sample, judged_errors) for sample in samples]
    logged = {completion.task_id for completion in completions}
    return Log(
        benchmark=about["task"],
        version=str(about.get("task_version", "")),
        model=about["model"],
        completions=completions,
        missing={
            str(task): "not in the log"
            for task in about["dataset"].get("sample_ids") or []
            if str(task) not in logged
        },
        hashes={str(sample["id"]): hash_data(_text(sample["input"])) for sample in samples},
        tool_version=about.get("packages", {}).get("inspect_ai", ""),
    )


def _completion(sample: Mapping[str, Any], judged_errors: bool) -> LoggedCompletion:
    scores, error = dict(_scores(sample.get("scores") or {})), sample.get("error") or ""
    if isinstance(error, dict):
        error = error["message"]
    return LoggedCompletion(
        str(sample["id"]), scores, "" if judged_errors and scores else str(error)
    )


def _scores(scores: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    """Yield each scorer's value; those of a scorer with several as scorer/value."""
    for name, score in scores.items():
        value = score["value"]
        if isinstance(value, dict):
            yield from ((f"{name}/{key}", _number(each)) for key, each in value.items())
        elif not isinstance(value, list):
            yield name, _number(value)


def _number(value: Any) -> float | None:
    """Return a score as a number. Words are those of Inspect's `value_to_float`; NaN is no score,
    and so is a word that Inspect does not know.
    """
    if isinstance(value, str):
        word = WORDS.get(value, WORDS.get(value.lower()))
        try:
            value = float(value) if word is None else word
        except ValueError:
            return None
    return None if value is None or isnan(value) else float(value)


def _text(given: Any) -> str:
    if isinstance(given, str):
        return given[:TEXT]
    return json.dumps([[message["role"], message["content"]] for message in given])[:TEXT]


FORMAT = LogFormat("Inspect", ("*.eval", "[0-9]*T*_*.json"), recognizes, read, RERUN)
