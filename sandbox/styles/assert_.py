"""Style `assert`: Python source with `check(candidate)`, which runs apart from the program."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from sandbox.styles.source_text import call_text, literal
from sandbox.styles.style import SOURCE, Input, Parse, Style, Test
from sandbox.verdict import Verdict
from sandbox.wire import frame
from sandbox.worker.attempt import Attempt
from sandbox.worker.literal import Claim, claims
from sandbox.worker.messages import Result, not_loaded, of_judge, of_tests, row
from sandbox.worker.slot import Broken
from sandbox.worker.watch import Stop


@dataclass(frozen=True)
class AssertTest:
    """Python source that defines `check(candidate)`. It runs in a judge process, never in the
    program's process.
    """

    source: str


class AssertAttempt(Attempt):
    """Decides tests as calls where each assertion compares a call with a literal; otherwise a judge
    process runs them.
    """

    def run(self) -> list[Result]:
        claims_of_tests = [claims(test["source"], self.job["entry"]) for test in self.tests]
        known = [test for test in claims_of_tests if test is not None]
        decided = self._claimed(known) if len(known) == len(claims_of_tests) else None
        return self._run_by_judge() if decided is None else decided

    def _claimed(self, tests: list[tuple[Claim, ...]]) -> list[Result] | None:
        """Return None where only a judge can tell; nothing has been decided then."""
        request = self.processes.header() + b"".join(
            frame(claim.call.encode()) for test in tests for claim in test
        )
        answers = sum(map(len, tests))
        with self.processes.started("call", request, len(tests), answers=answers) as watch:
            loaded = watch.next()
            if isinstance(loaded, Stop) or loaded[:1] != b"L":
                return [row(*not_loaded(loaded), watch)]
            return of_tests(watch, tests)

    def _run_by_judge(self) -> list[Result]:
        results: list[Result] = []
        with self.processes.judged() as watch:
            loaded = watch.next()
            if loaded == b"U":
                raise Broken("the program's process was not set up")
            if isinstance(loaded, bytes) and loaded[:1] == b"B":
                self.unusable = True
                return [row(Verdict.INFRA, loaded[1:].decode("utf-8", "replace"), watch)]
            if isinstance(loaded, Stop) or loaded[:1] != b"L":
                return [row(*not_loaded(loaded), watch)]
            for at in range(len(self.tests)):
                message = watch.next()
                verdict, detail, shared = of_judge(message, at, watch)
                self.shared |= shared
                results.append(row(verdict, detail, watch))
                if isinstance(message, Stop) or message[:1] != b"V":
                    break
                watch.begin()
        return results


def text(test: Test, name: str, compare: str, parse: Parse) -> str:
    """Return the body of `check`, on the function's own name. Raises as `parse`."""
    tree = parse(test["source"])
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "candidate":
            node.id = name
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    check = next((node for node in functions if node.name == "check"), None)
    return "\n".join(map(ast.unparse, check.body)) if check else str(test["source"]).strip()


def inputs(test: Test, parse: Parse) -> list[Input]:
    """Return the literal arguments of the calls in `check`; none of a text that is no Python."""
    try:
        nodes = list(ast.walk(parse(test["source"])))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.args.args]
    checks = [node for node in functions if node.name == "check"]
    calls = [
        node
        for check in checks
        for node in ast.walk(check)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == checks[0].args.args[0].arg
    ]
    return [arguments for call in calls if (arguments := _arguments(call)) is not None]


def _arguments(call: ast.Call) -> Input | None:
    try:
        return {
            "args": [ast.literal_eval(argument) for argument in call.args],
            "kwargs": {str(word.arg): ast.literal_eval(word.value) for word in call.keywords},
        }
    except (ValueError, TypeError, RecursionError):
        return None


def expecting(test_input: Input, output: Any) -> Test | None:
    """Return a test with one assertion; None if the output cannot be written as a literal."""
    text = literal(output)
    try:
        equal = ast.literal_eval(text) == output
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    claim = f"assert {call_text('candidate', test_input)} == {text}"
    return {"source": f"def check(candidate):\n    {claim}\n"} if equal else None


STYLE = Style(
    "assert",
    AssertTest,
    SOURCE,
    AssertAttempt,
    show=lambda test: str(test.source),
    text=text,
    inputs=inputs,
    expecting=expecting,
    example='{"source": "def check(candidate):\\n    assert candidate(1) == 2"}',
    options=("in_place",),
)
