"""BigCodeBench, 1140 tasks with unittests (Zhuo et al. 2024, arXiv:2406.15877; Apache-2.0).

Gated: for evaluation only. There are two prompts per task. `complete` is a signature with a
docstring: it is the starter code, and the docstring is the statement. `instruct` is prose, in
`extra["instruct_prompt"]`; `instructed` returns the problem with that prompt. Solution and tests
are the same.

`extra["libs"]` is upstream's list of a task's libraries; 327 tasks name only the standard library.
27 of these import more in their tests, so `extra["packages"]` is read from the imports. If the
sandbox lacks any of these packages, the task is not measured.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import replace

from problems.columns import ProblemError
from problems.reading.humaneval import docstring
from problems.reading.source import Row, Source, has, number, python, text
from problems.schema import Problem
from sandbox.protocol import Limits

RELEASE = "v0.1.0"
LIMITS = Limits(wall_s=30.0, cpu_s=10.0, memory_mb=1024)  # per test method
SLOW = {  # all 10! permutations of ten numbers, each shuffled; the others sleep up to a minute
    0: Limits(wall_s=270.0, cpu_s=90.0, memory_mb=2048),
    **dict.fromkeys((195, 1103, 1104), Limits(wall_s=120.0, cpu_s=10.0, memory_mb=1024)),
}


def convert(row: Row, where: str) -> Problem:
    """Convert a row of `BigCodeBench.jsonl` or of the hub's dataset."""
    task, prompt, entry_point = (
        number(row, "task_id", where),
        text(row, "complete_prompt", where),
        text(row, "entry_point", where),
    )
    solution, test = (
        text(row, "code_prompt", where) + text(row, "canonical_solution", where),
        text(row, "test", where),
    )
    libs = _listed(text(row, "libs", where), where)
    return Problem(
        problem_id=f"bigcodebench/{task}",
        source="bigcodebench",
        statement=docstring(prompt, entry_point, where),
        style="unittest",
        tests=({"source": test},),
        entry_point=entry_point,
        starter_code=prompt,
        solutions=(solution,),
        limits=SLOW.get(task, LIMITS),
        tags=("bigcodebench",),
        split="heldout",
        licence="Apache-2.0",
        gated=True,
        extra={
            "task_id": task,
            "release": RELEASE,
            "instruct_prompt": text(row, "instruct_prompt", where),
            "libs": libs,
            "packages": sorted(
                ({*map(_top, libs)} | _imported(solution, where) | _imported(test, where))
                - sys.stdlib_module_names
            ),
        },
    )


def instructed(problem: Problem) -> Problem:
    """Return the same task with the prose prompt, without starter code beyond the prose."""
    return replace(problem, statement=problem.extra["instruct_prompt"], starter_code="")


def _listed(libs: str, where: str) -> list[str]:
    try:
        names = ast.literal_eval(libs)
    except (SyntaxError, ValueError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ProblemError(
            f"key 'libs' is {libs[:80]!r}", "expected a list of modules, as text", where
        )
    return names


def _imported(source: str, where: str) -> set[str]:
    """Return the packages that the source imports. Raises ProblemError if it is not Python."""
    nodes = list(ast.walk(python(source, "solution or test", where)))
    whole = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    return {
        *map(_top, whole),
        *(
            _top(node.module)
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module and not node.level
        ),
    }


def _top(module: str) -> str:
    return module.partition(".")[0]


BIGCODEBENCH = Source(
    "bigcodebench",
    "BigCodeBench, 1140 tasks with unittests, gated",
    convert,
    "bigcode/bigcodebench",
    None,
    ("BigCodeBench.jsonl.gz", "BigCodeBench.jsonl"),
    fits=lambda row: has(row, "complete_prompt", "instruct_prompt"),
)
