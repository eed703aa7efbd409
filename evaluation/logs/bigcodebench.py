"""Result files of BigCodeBench (`bigcodebench.evaluate`): each program's status on the unit tests.

The file `*_pass_at_k.json` of the same run names the tasks whose own solution failed there, for
want of a package or of time. Such a task says nothing about a model, and has no score.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from evaluation.logs.evalplus import first_result, model_of
from evaluation.logs.log import Log, LogFormat, LoggedCompletion

RUN = re.compile(r"(?P<model>.+?)--(?P<benchmark>bigcodebench(-hard)?-(complete|instruct))\b")


def recognizes(content: Any) -> bool:
    return {"status", "solution"} <= first_result(content).keys()


def read(content: Any, path: Path) -> Log:
    rates = path.with_name(path.name.replace("eval_results.json", "pass_at_k.json"))
    known = json.loads(rates.read_text(encoding="utf-8")) if rates.exists() else {}
    failed = set(known.get("failed_tasks", []))
    name = model_of(path)
    run = RUN.match(name)
    return Log(
        benchmark=run["benchmark"] if run else "bigcodebench",
        version="",
        model=run["model"] if run else name,
        completions=[
            LoggedCompletion(
                task,
                {"pass": float(result["status"] == "pass")},
                "its own solution failed there" if task in failed else "",
                result["solution"],
                result["status"] == "timeout",
            )
            for task, results in content["eval"].items()
            for result in results
        ],
    )


FORMAT = LogFormat(
    "BigCodeBench",
    ("*eval_results.json",),
    recognizes,
    read,
    "run `bigcodebench.evaluate` again, in an environment with its packages",
    has_programs=True,
)
