"""MBPP+ v0.2.0, 378 tasks (EvalPlus, arXiv:2305.01210; Apache-2.0). Gated: for evaluation only.

Tests: base inputs, plus inputs (problems/reading/plus.py). JSON has turned the tuples, sets and
complex numbers of some tasks into lists and strings; they are restored here. The hub's dataset has
no inputs, so its asserts are the tests, and the score is not an MBPP+ score.

Task 255 has results of up to 1.6 million tuples of 77 elements, more than a test process can hold.
So 5 of its 109 plus inputs, those whose results have over a million elements, are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

from problems.columns import ProblemError
from problems.reading.asserts import called, check, used
from problems.reading.plus import plus_test
from problems.reading.source import Row, Source, has, number, text, texts
from problems.schema import Problem
from sandbox.protocol import Limits

RELEASE = "v0.2.0"
LIMITS = Limits.of_work(20.0, memory_mb=512)
# sums of up to 10^8 numbers, in the program and in the test process
SLOW = {599: Limits.of_work(120.0, memory_mb=512)}

SETS = "set(got) == set(expected)"
SAME = {  # upstream's special comparisons: expressions over got, expected, args
    **dict.fromkeys((2, 7, 111, 140, 232, 249, 579, 769), SETS),
    164: "True",
    295: "got == expected or got == 0",
    558: (
        "got == expected or got == sum(abs(int(a) - int(b)) for a, b in "
        "zip(*(str(n).zfill(max(len(str(m)) for m in args)) for n in args)))"
    ),
    581: (
        "got == expected or abs(got - round(args[0] ** 2 + 2 * args[0] * ((args[0] / 2) ** 2 + "
        "args[1] ** 2) ** 0.5)) <= atol"
    ),
    **dict.fromkeys(
        (737, 787, 794),
        "got == expected if isinstance(got, bool) else (expected is not None) == (got is not None)",
    ),
}


def convert(row: Row, where: str) -> Problem:
    """Convert a row of `MbppPlus.jsonl` or of the hub's dataset.

    The hub has the keys code, test_list and test_imports instead of canonical_solution and inputs.
    """
    task, prompt = number(row, "task_id", where), text(row, "prompt", where)
    extra: dict[str, Any] = {"task_id": task, "release": RELEASE, "prompt": prompt}
    if "code" in row:
        code, asserts = text(row, "code", where), texts(row, "test_list", where)
        entry_point = called(code, asserts, where)
        imports = "\n".join(row.get("test_imports") or []) or used(code, asserts)
        tests = tuple(check(line, entry_point, imports) for line in asserts)
    else:
        code, entry_point, atol = (
            text(row, "canonical_solution", where),
            text(row, "entry_point", where),
            float(row.get("atol") or 0),
        )
        inputs = {key: restored(task, row, f"{key}_input", where) for key in ("base", "plus")}
        # Task 793 has no plus inputs.
        args = {key: value for key, value in inputs.items() if value}
        tests = tuple(
            plus_test(code, entry_point, value, atol, SAME.get(task, "got == expected"))
            for value in args.values()
        )
        extra |= {"tests": list(args), "plus_inputs": len(inputs["plus"])}
    return Problem(
        problem_id=f"mbppplus/{task}",
        source="mbppplus",
        statement=prompt.strip().strip('"').split("\nassert ")[0].strip(),
        style="assert",
        tests=tests,
        entry_point=entry_point,
        solutions=(code,),
        limits=SLOW.get(task, LIMITS),
        tags=("mbpp",),
        split="heldout",
        licence="Apache-2.0",
        gated=True,
        extra=extra,
    )


def restored(task: int, row: Row, key: str, where: str) -> list[list[Any]]:
    """Return the inputs under `key` that a test process can hold, with their original types.

    Raises ProblemError if they are not lists.
    """
    inputs = row.get(key) or []  # upstream writes an empty list as {}
    if not isinstance(inputs, list) or not all(isinstance(args, list) for args in inputs):
        raise ProblemError(
            f"key {key!r} is no list of argument lists", "fetch the file again", where
        )
    if task == 255:
        inputs = [
            args
            for args in inputs
            if comb(max(0, len(args[0]) + args[1] - 1), args[1]) * args[1] <= 1_000_000
        ]
    restore = RESTORE.get(task)
    return [restore(args) for args in inputs] if restore else inputs


def _each(args: list[Any]) -> list[Any]:
    """Make every argument a tuple."""
    return [tuple(value) for value in args]


def _inner(args: list[Any]) -> list[Any]:
    """Make every argument a list of tuples."""
    return [[tuple(item) for item in value] for value in args]


def _both(args: list[Any]) -> list[Any]:
    """Make every argument a tuple of tuples."""
    return [tuple(tuple(item) for item in value) for value in args]


def _first(args: list[Any]) -> list[Any]:
    """Make the first argument a tuple."""
    return [tuple(args[0]), *args[1:]]


def _second(args: list[Any]) -> list[Any]:
    return [args[0], tuple(args[1])]


def _first_inner(args: list[Any]) -> list[Any]:
    """Make the first argument a list of tuples."""
    return [[tuple(item) for item in args[0]], *args[1:]]


def _all_the_way(value: Any) -> Any:
    return tuple(_all_the_way(item) for item in value) if isinstance(value, list) else value


RESTORE: dict[int, Callable[[list[Any]], list[Any]]] = {
    **dict.fromkeys(
        (
            2,
            116,
            132,
            143,
            222,
            261,
            273,
            394,
            399,
            421,
            424,
            429,
            470,
            560,
            579,
            596,
            616,
            630,
            726,
            740,
            744,
            809,
        ),
        _each,
    ),
    **dict.fromkeys(
        (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780), _inner
    ),
    **dict.fromkeys((75, 413, 444, 753), _first_inner),
    **dict.fromkeys((106, 750), _second),
    **dict.fromkeys((250, 307, 405, 446, 617, 720, 763, 808), _first),
    **dict.fromkeys((259, 401, 445), _both),
    **dict.fromkeys((580, 615, 791), lambda args: [_all_the_way(value) for value in args]),
    124: lambda args: [float(args[0]), complex(args[1])],
    252: lambda args: [complex(args[0])],
    278: lambda args: [tuple(tuple(item) if isinstance(item, list) else item for item in args[0])],
    722: lambda args: [
        {key: tuple(value) for key, value in args[0].items()},
        *args[1:],
    ],
}

MBPPPLUS = Source(
    "mbppplus",
    "MBPP+ v0.2.0, 378 tasks, gated",
    convert,
    "evalplus/mbppplus",
    None,
    ("MbppPlus.jsonl.gz", "MbppPlus.jsonl"),
    fits=lambda row: (
        has(row, "task_id", "code", "test_list", "test")
        or (has(row, "prompt", "plus_input") and str(row.get("task_id")).startswith("Mbpp"))
    ),
)
