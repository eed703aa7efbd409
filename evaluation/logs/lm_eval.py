"""Sample files of lm-evaluation-harness (`lm_eval --log_samples`): a row for each task and filter.

A score is named as in the harness's results: metric,filter. The results file of the same run, where
it is in the same folder, has the model, the task's version, and whether higher is better.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_data
from evaluation.logs.log import Log, LogError, LogFormat, LoggedCompletion, number

NAME = re.compile(r"samples_(?P<task>.+?)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl")
FIELDS = {  # all others are metrics, in files that do not list them
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
    "doc_hash", "prompt_hash", "target_hash",
}  # fmt: skip


def recognizes(content: Any) -> bool:
    return (
        isinstance(content, list)
        and bool(content)
        and isinstance(content[0], dict)
        and {"doc_id", "resps", "filtered_resps"} <= content[0].keys()
    )


def read(content: Any, path: Path) -> Log:
    scores: dict[str, dict[str, float | None]] = {}
    hashes, prompts = {}, {}
    for row in content:
        task, filtered = str(row["doc_id"]), row.get("filter", "none")
        if task not in hashes:
            hashes[task] = hash_data(row["doc"])
            prompts[task] = row.get("prompt_hash", "")
        for metric in row.get("metrics") or sorted(row.keys() - FIELDS):
            name = f"{metric},{filtered}"
            if name in scores.setdefault(task, {}):
                raise LogError(
                    f"{path}: task {task} has two rows of {name}: remove those of an earlier run"
                )
            scores[task][name] = number(row[metric])
    named = NAME.fullmatch(path.name)
    benchmark = named["task"] if named else path.stem
    results = _results(path.with_name(f"results_{named['date']}.json")) if named else {}
    higher = results.get("higher_is_better", {}).get(benchmark, {})
    fewer_is_better = {name for name, better in higher.items() if better is False}
    return Log(
        benchmark=benchmark,
        version=str(results.get("versions", {}).get(benchmark, "")),
        model=results.get("model_name") or path.resolve().parent.name,
        completions=[
            LoggedCompletion(
                task,
                {n: v for n, v in each.items() if n.split(",")[0] not in fewer_is_better},
            )
            for task, each in scores.items()
        ],
        hashes=hashes,
        tool_version=str(results.get("lm_eval_version", "")),
        prompts={task: each for task, each in prompts.items() if each},
    )


def _results(path: Path) -> Mapping[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}  # type: ignore[no-any-return]


FORMAT = LogFormat(
    "lm-evaluation-harness",
    ("samples_*.jsonl",),
    recognizes,
    read,
    "evaluate again with `lm_eval --log_samples`",
)
