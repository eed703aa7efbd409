"""Result files of EvalPlus (`evalplus.evaluate`): each program's status on both sets of tests.

A program passes `plus` if it passes the base tests too, as in EvalPlus's own HumanEval+ and MBPP+.
Versions before 0.3 wrote a status and the tests' results in a pair for each set, and no programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from evaluation.logs.log import Log, LogFormat, LoggedCompletion

BENCHMARKS = {"HumanEval": "humaneval+", "Mbpp": "mbpp+"}  # by the beginning of a task's id
PASS = ("pass", "success")  # "success" before 0.3
TIMEOUT = ("timeout", "timed out")


def recognizes(content: Any) -> bool:
    return "base_status" in first_result(content) or _is_older(_first_task(content))


def read(content: Any, path: Path) -> Log:
    task, version = next(iter(content["eval"])), content.get("hash")
    return Log(
        benchmark=BENCHMARKS.get(task.split("/")[0], "evalplus"),
        # 0.1 wrote a number that is another one in each process.
        version=version if isinstance(version, str) else "",
        model=model_of(path),
        completions=[
            _completion(task, result)
            for task, results in content["eval"].items()
            for result in (_older(results) if _is_older(results) else results)
        ],
        default="plus",
    )


def _completion(task: str, result: Mapping[str, Any]) -> LoggedCompletion:
    base, plus = result["base_status"], result["plus_status"]
    passed = float(base in PASS)
    scores = {"base": passed, "plus": None if plus is None else passed * (plus in PASS)}
    timed_out = base in TIMEOUT or plus in TIMEOUT
    return LoggedCompletion(task, scores, "", result["solution"], timed_out)


def _is_older(results: Any) -> bool:
    return isinstance(results, dict) and {"base", "plus"} <= results.keys()


def _older(results: Mapping[str, Sequence[Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield a task's results in the present form; without extra tests `plus` is empty."""
    for base, plus in zip_longest(results["base"], results["plus"] or ()):
        yield {"base_status": base[0], "plus_status": plus[0] if plus else None, "solution": ""}


def first_result(content: Any) -> Mapping[str, Any]:
    """Return the first program's result in a file of EvalPlus's shape, else an empty one."""
    results = _first_task(content)
    first = results[0] if isinstance(results, list) and results else None
    return first if isinstance(first, dict) else {}


def _first_task(content: Any) -> Any:
    tasks = content.get("eval") if isinstance(content, dict) else None
    return next(iter(tasks.values()), None) if isinstance(tasks, dict) else None


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
