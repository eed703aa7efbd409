"""Results of LiveCodeBench (`lcb_runner.runner.main --evaluate`): `*eval_all.json`, a row for each
question with its completions and their verdicts.

A verdict of LiveCodeBench's own failure (error code -5) is no score. The file states neither the
release nor the prompt; the questions' texts are compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_data
from evaluation.logs.log import Log, LogError, LogFormat, LoggedCompletion

FAILED, TIMED_OUT = -5, -3  # error codes in lcb_runner/evaluation


def recognizes(content: Any) -> bool:
    return (
        isinstance(content, list)
        and bool(content)
        and isinstance(content[0], dict)
        and {"question_id", "graded_list"} <= content[0].keys()
    )


def read(content: Any, path: Path) -> Log:
    completions, hashes = [], {}
    for row in content:
        task = str(row["question_id"])
        if "test_id" in row:  # a question of test output prediction has several
            task += f"/{row['test_id']}"
        if task in hashes:
            raise LogError(f"{path}: task {task} is there twice: remove that of an earlier run")
        hashes[task] = hash_data([row["question_content"], row.get("starter_code")])
        programs = row.get("code_list") or row.get("pred_list") or ()
        errors = row.get("metadata") or ()
        for number, passed in enumerate(row["graded_list"]):
            code = _error_code(errors[number]) if number < len(errors) else None
            completions.append(
                LoggedCompletion(
                    task,
                    {"pass": float(passed is True)},
                    "LiveCodeBench's test runner failed" if code == FAILED else "",
                    str(programs[number]) if number < len(programs) else "",
                    code == TIMED_OUT,
                )
            )
    return Log(
        benchmark="livecodebench" if "code_list" in content[0] else "livecodebench-testoutput",
        version="",
        model=path.resolve().parent.name,
        completions=completions,
        hashes=hashes,
    )


def _error_code(metadata: Any) -> Any:
    """Return the error code of a completion. Its metadata is JSON in a string."""
    about = json.loads(metadata) if isinstance(metadata, str) else metadata
    return about.get("error_code") if isinstance(about, Mapping) else None


FORMAT = LogFormat(
    "LiveCodeBench",
    ("*eval_all.json",),
    recognizes,
    read,
    "evaluate them again with `--continue_existing_with_eval`",
    has_programs=True,
)
