"""Result files of EvalPlus (`evalplus.evaluate`): each program's status on both sets of tests.

A program passes `plus` if it passes the base tests too, as in EvalPlus's own HumanEval+ and MBPP+.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.logs.log import Log, LogFormat, LoggedCompletion

BENCHMARKS = {"HumanEval": "humaneval+", "Mbpp": "mbpp+"}  # by the beginning of a task's id


def recognizes(content: Any) -> bool:
    return "base_status" in first_result(content)


def read(content: Any, path: Path) -> Log:
    task = next(iter(content["eval"]))
    return Log(
        benchmark=BENCHMARKS.get(task.split("/")[0], "evalplus"),
        version=str(content.get("hash", "")),
        model=model_of(path),
        completions=[
            _completion(task, result)
            for task, results in content["eval"].items()
            for result in results
        ],
        default="plus",
    )


def _completion(task: str, result: Mapping[str, Any]) -> LoggedCompletion:
    base, plus = result["base_status"], result["plus_status"]
    passed = float(base == "pass")
    scores = {"base": passed, "plus": None if plus is None else passed * (plus == "pass")}
    return LoggedCompletion(task, scores, "", result["solution"], "timeout" in (base, plus))


def first_result(content: Any) -> Mapping[str, Any]:
    """Return the first program's result in a file of EvalPlus's shape, else an empty one."""
    tasks = content.get("eval") if isinstance(content, dict) else None
    results = next(iter(tasks.values()), None) if isinstance(tasks, dict) else None
    first = results[0] if isinstance(results, list) and results else None
    return first if isinstance(first, dict) else {}


def model_of(path: Path) -> str:
    """Return the model by the name of a result file, or by its folder's."""
    name = path.name.removesuffix("eval_results.json").removesuffix("_")
    return name or path.resolve().parent.name


FORMAT = LogFormat(
    "EvalPlus",
    ("*eval_results.json",),
    recognizes,
    read,
    "run `evalplus.evaluate` again",
    has_programs=True,
)
