"""Share of planted faults that `ratchet audit` finds, and findings on the clean twins.

    python -m measurements.audit [--each N] [--rows | --folders] [--keep FOLDER]

Rows: faults in the problems that come with Ratchet. Folders: faults in small Harbor tasks that are
made here, some with a Git store. N: clean problems, and clean folders, that each kind of fault is
planted in. A fault is found if one of its checks fails. `RATCHET_DATA` names the folder of
HumanEval, whose statements are the planted contamination.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from measurements.audit_folders import FOLDER_FAULTS, write_folders
from problems.schema import Problem
from problems.sources.registry import load
from problems.task_folders.needs import PYTEST
from rewards.audit.findings import (
    KNOWN,
    LEAK,
    NOTHING,
    OTHERS,
    REPEATS,
    SOLUTION,
    WRONG,
    AuditedTask,
)
from rewards.audit.folders import audit_folders
from rewards.audit.rows import audit_rows
from sandbox.sandbox import Sandbox, SandboxConfig

DATA = os.environ.get("RATCHET_DATA", "")
RANDOM = "\n\nimport random as _random\n\n_right, _ill = NAME, _random.random() < 0.3\n\n\n"
RANDOM += "def NAME(*args):\n    return None if _ill else _right(*args)\n"


def _checker(problem: Problem, body: str) -> Problem:
    names = "args, got, expected" if problem.style == "call" else "stdin, got, expected"
    return replace(problem, checker=f"import random\n\n\ndef check({names}, **_):\n    {body}\n")


def _wrong_value(problem: Problem) -> Problem:
    *tests, last = problem.tests
    key = "expected" if problem.style == "call" else "stdout"
    value = last[key]
    wrong = value + "x" if isinstance(value, str) else [value]
    return replace(problem, tests=(*tests, last | {key: wrong}))


def _contradicting(problem: Problem) -> Problem:
    return replace(problem, tests=(*problem.tests, _wrong_value(problem).tests[-1]))


def _table(problem: Problem) -> Problem:
    if problem.style == "call":
        pairs = [(tuple(test["args"]), test["expected"]) for test in problem.tests]
        body = "\n".join(
            f"    if args == {given!r}:\n        return {value!r}" for given, value in pairs
        )
        source = f"def {problem.entry_point}(*args):\n{body}\n"
    else:
        table = {test["stdin"]: test["stdout"] for test in problem.tests}
        source = f"import sys\n\nprint({table!r}[sys.stdin.read()], end='')\n"
    return replace(problem, solutions=(source,))


def _answers_shown(problem: Problem) -> Problem:
    name = problem.entry_point
    shown = [
        f"{name}({', '.join(map(repr, test['args']))}) == {test['expected']!r}"
        if problem.style == "call"
        else f"{test['stdin']}\ngives\n{test['stdout']}"
        for test in problem.tests
    ]
    return replace(problem, statement="\n".join([problem.statement, *shown]))


def _second_wrong(problem: Problem) -> Problem:
    name, first = problem.entry_point, problem.solutions[0]
    if problem.style != "call":
        return replace(problem, solutions=(first, "print('no')\n"))
    args = problem.tests[-1]["args"]
    wrong = f"{first}\n\n_right = {name}\n\n\ndef {name}(*args):\n"
    wrong += f"    return 'no' if list(args) == {args!r} else _right(*args)\n"
    return replace(problem, solutions=(first, wrong))


def _draws(problem: Problem) -> Problem:
    first = problem.solutions[0]
    if problem.style == "call":
        return replace(
            problem, solutions=(first + RANDOM.replace("NAME", str(problem.entry_point)),)
        )
    return replace(
        problem, solutions=(f"{first}\nimport random\nprint('x' * (random.random() < 0.3))\n",)
    )


def _broken(problem: Problem) -> Problem:
    test = {"source": "def check(candidate):\n    assert candidate(1 == 2\n"}
    return replace(problem, style="assert", tests=(test,), entry_point=problem.entry_point or "f",
                   visible_tests=0, checker=None, compare="exact", tolerance=None)  # fmt: skip


def _known(problem: Problem) -> Problem | None:
    number = int(re.sub(r"\D", "", f"{abs(hash(problem.problem_id))}")[:6]) % 164
    path = Path(DATA) / "humaneval"
    if not DATA or not path.is_dir():
        return None
    return replace(problem, statement=load("humaneval", path).problems[number].statement)


ANY_OF_THEM = "If there are several answers, print any of them."
RowFault = Callable[[Problem], Problem | None]
ROW_FAULTS: dict[str, tuple[RowFault, set[str]]] = {
    "a wrong expected value": (_wrong_value, {SOLUTION}),
    "contradicting tests": (_contradicting, {SOLUTION}),
    "a test that cannot be run": (_broken, {SOLUTION}),
    "a checker that accepts everything": (lambda p: _checker(p, "return True"), {NOTHING, WRONG}),
    "a checker that compares types": (
        lambda p: _checker(p, "return type(got) is type(expected)"), {NOTHING, WRONG}),
    "a single test": (lambda p: replace(p, tests=p.tests[:1], visible_tests=1), {NOTHING, WRONG}),
    "hidden tests that repeat the visible": (
        lambda p: replace(p, tests=p.tests[:2] * 2, visible_tests=2), {WRONG}),
    "a solution that draws": (_draws, {REPEATS, SOLUTION}),
    "a checker that draws": (
        lambda p: _checker(p, "return got == expected and random.random() < 0.9"),
        {REPEATS, SOLUTION, OTHERS}),
    "the solution in the statement": (
        lambda p: replace(p, statement=f"{p.statement}\n\n{p.solutions[1]}"), {LEAK}),
    "the solution as starter code": (lambda p: replace(p, starter_code=p.solutions[0]), {LEAK}),
    "hidden answers in the statement": (_answers_shown, {LEAK}),
    "a reference that is a table": (_table, {SOLUTION}),
    "a second solution that is refused": (_second_wrong, {OTHERS, SOLUTION}),
    "any of several answers is right": (
        lambda p: replace(p, statement=f"{p.statement} {ANY_OF_THEM}"),
        {OTHERS}),
    "the statement of a benchmark's task": (_known, {KNOWN}),
}  # fmt: skip


def planted_rows(each: int) -> tuple[list[Problem], dict[str, tuple[str, set[str]]]]:
    """Return clean problems and copies with a fault, and the fault and its checks by id."""
    simple = [problem for problem in load("simple").problems if len(problem.tests) > 3]
    stdio = [problem for problem in simple if problem.style == "stdio"]
    calls = [problem for problem in simple if problem.style == "call"]
    step = len(calls) // max(1, each - each // 4)
    clean = [*stdio[: each // 4], *calls[::step]][:each]
    rows, faults = list(clean), dict[str, tuple[str, set[str]]]()
    for name, (plant, checks) in ROW_FAULTS.items():
        for problem in clean:
            if (faulty := plant(problem)) is not None:
                new = f"planted/{problem.problem_id}/{name.replace(' ', '-')}"
                rows.append(replace(faulty, problem_id=new))
                faults[new] = (name, checks)
    return rows, faults


def summarize(tasks: Sequence[AuditedTask], faults: dict[str, tuple[str, set[str]]]) -> None:
    """Print, for each kind of fault, how many were found, and what failed on clean tasks."""
    found, missed, kinds = defaultdict[str, int](int), list[str](), defaultdict[str, int](int)
    clean = [task for task in tasks if task.name not in faults]
    for task in tasks:
        failed = {each.check_id for each in task.findings if each.status == "fail"}
        if task.name in faults:
            name, checks = faults[task.name]
            kinds[name] += 1
            found[name] += bool(failed & checks)
            if not failed & checks:
                seen = [f"{each.check_id} {each.status} {each.evidence}" for each in task.findings]
                missed.append(f"{task.name}: {[text for text in seen if 'pass' not in text]}")
        else:
            for each in task.findings:
                if each.status in ("fail", "error"):
                    print(f"CLEAN {task.name}: {each.check_id} {each.status} {each.evidence[:200]}")
    for name, count in kinds.items():
        print(f"{found[name]:3} of {count:3}  {name}")
    for line in missed:
        print(f"missed {line[:600]}")
    false = sum(any(each.status == "fail" for each in task.findings) for task in clean)
    total, all_found = sum(kinds.values()), sum(found.values())
    unrun = sum(each.status == "skip" for task in clean for each in task.findings)
    seconds = sorted(task.duration_s for task in tasks)
    print(f"{all_found} of {total} faults found ({all_found / max(1, total):.1%}); {false} of "
          f"{len(clean)} clean tasks with a failed check, {unrun} of their checks not run; "
          f"median {seconds[len(seconds) // 2]:.1f} s a task, "
          f"longest {seconds[-1]:.1f} s")  # fmt: skip


def shown(tasks: Iterator[AuditedTask]) -> list[AuditedTask]:
    """Return the tasks, and print each as soon as it is known."""
    every = []
    for task in tasks:
        failed = [each.check_id for each in task.findings if each.status == "fail"]
        print(f"{task.duration_s:.1f} s {task.name}: {failed}", file=sys.stderr, flush=True)
        every.append(task)
    return every


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--each", type=int, default=8)
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--folders", action="store_true")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    config = SandboxConfig(packages=("numpy", "sortedcontainers", *PYTEST))
    with Sandbox(config) as sandbox, tempfile.TemporaryDirectory() as scratch:
        print(f"isolation {sandbox.describe()}, {sandbox.workers} workers")
        if not options.folders:
            rows, faults = planted_rows(options.each)
            started = time.process_time()
            summarize(shown(audit_rows(rows, sandbox)), faults)
            print(f"{time.process_time() - started:.0f} s of CPU outside the sandbox's workers")
        if not options.rows:
            folder = options.keep or Path(scratch)
            faults = write_folders(folder, min(options.each, 5))
            summarize(shown(audit_folders(folder, sandbox)), faults)
            print(f"{len(FOLDER_FAULTS)} kinds of faults in folders")


if __name__ == "__main__":
    main()
