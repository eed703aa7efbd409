"""Attempts of the audit at one task folder, in the sandbox.

This text follows that of sandbox/child/repository.py in the program of a job.
"""

from __future__ import annotations

import ast
import json
import os
import re
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.child.repository import LACKING, ROOT, SESSIONS, TASK, last, placed, reward, solve


def alive(session: int) -> bool:
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True


def files() -> dict[Path, bytes]:
    every = (path for path in ROOT.rglob("*") if path.is_file() and not path.is_symlink())
    skipped = ("tests", "logs", "root", "var")
    return {
        path: path.read_bytes() for path in every if path.relative_to(ROOT).parts[0] not in skipped
    }


def made() -> tuple[dict[Path, bytes], int, str]:
    """Return what a solution changed: path -> content, without what it removed."""
    before = files()
    code, said = solve()
    return {path: data for path, data in files().items() if before.get(path) != data}, code, said


def solution(case: unittest.TestCase) -> None:
    _, code, said = made()
    value, why = reward()
    TASK["passed"] = value >= 1
    if value < 1:
        lacking = LACKING.search(f"{said}\n{why}")
        if lacking:
            case.fail(f"cannot run: the sandbox lacks it: {lacking[0]}")
        case.fail(
            f"reward {value:g}; {why or last(said)}"
            + (f"; solve exits {code}: {last(said)}" if code else "")
        )


def again(case: unittest.TestCase) -> None:
    """Run the tests again on what `solution` left, with other hash seeds and time zones."""
    values = [reward(seed) for seed in range(1, TASK["repeats"] + 1)]
    passed = sum(value >= 1 for value, _ in values)
    if not passed and not TASK.get("passed"):
        case.fail("cannot run: the solution does not pass")
    if 0 < passed < len(values) or not passed:
        why = next(why for value, why in values if value < 1)
        case.fail(f"{passed} of {len(values)} further runs pass; {why}")


def refused(case: unittest.TestCase, what: str) -> None:
    value, _ = reward()
    if value >= 1:
        case.fail(f"reward {value:g} for {what}")


def nothing(case: unittest.TestCase) -> None:
    refused(case, "doing nothing")


def plants(case: unittest.TestCase) -> None:
    """Leave files that a test runner might load, and a reward, without solving anything."""
    hook = (
        "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\n"
        "def pytest_runtest_makereport(item, call):\n"
        "    outcome = yield\n    outcome.get_result().outcome = 'passed'\n"
    )
    for folder in {placed(TASK["workdir"]), ROOT / "app", ROOT / "root"}:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "conftest.py").write_text(hook)
        (folder / "pytest.py").write_text("print('1 passed')\n")
    (ROOT / "logs/verifier/reward.txt").write_text("1\n")
    refused(case, "conftest.py, pytest.py and reward.txt, planted by the model")


def altered(case: unittest.TestCase, change: Callable[[Path, str], str], what: str) -> str:
    outputs, _, _ = made()
    if any(alive(session) for session in SESSIONS):
        case.skipTest("what the solution left running does not read its files again")
    changed = 0
    for path, data in outputs.items():
        try:
            text = data.decode()
            new = change(path, text)
        except (UnicodeDecodeError, ValueError, SyntaxError, RecursionError):
            continue
        if new != text:
            path.write_text(new)
            changed += 1
    if not changed:
        case.skipTest("nothing to change")
    return f"{what} ({changed} files)"


def empty(case: unittest.TestCase) -> None:
    refused(case, altered(case, lambda path, text: "", "empty output files"))


def numbers(case: unittest.TestCase) -> None:
    def change(path: Path, text: str) -> str:
        if path.suffix in (".py", ".sh"):
            raise ValueError
        return re.sub(r"(?<![\w.])\d+", lambda match: str(int(match[0]) + 7), text)

    refused(case, altered(case, change, "outputs with other numbers"))


def header(case: unittest.TestCase) -> None:
    def change(path: Path, text: str) -> str:
        lines = text.splitlines(keepends=True)
        if path.suffix in (".py", ".sh") or len(lines) < 3:
            raise ValueError
        return "".join(lines[: (len(lines) + 1) // 2])

    refused(case, altered(case, change, "the first half of the outputs"))


def hollow(case: unittest.TestCase) -> None:
    def change(path: Path, text: str) -> str:
        tree = ast.parse(text) if path.suffix == ".py" else None
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                node.body = [ast.Return(ast.Constant(None))]
        return ast.unparse(ast.fix_missing_locations(tree)) if tree else text

    refused(case, altered(case, change, "functions that return None"))


def otherwise(case: unittest.TestCase) -> None:
    def change(path: Path, text: str) -> str:
        if path.suffix == ".json" and not TASK["exact"]:
            value = json.loads(text)
            packed = json.dumps(value, separators=(",", ":"))
            return packed if packed != text.strip() else json.dumps(value, indent=3)
        return ast.unparse(ast.parse(text)) + "\n" if path.suffix == ".py" else text

    what = altered(case, change, "the solution's outputs in another layout")
    value, why = reward()
    if value < 1:
        case.fail(f"reward {value:g} for {what}; {why}")
