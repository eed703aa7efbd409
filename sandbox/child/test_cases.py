"""Runs the unittests of a job in the program's own process, as `unittest` does: all methods of the
source, in its order. Nothing here can be trusted: the program shares the interpreter.

Each method that is not skipped sends one message: M [Class.method, verdict, detail]. R follows the
last one.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any, NoReturn

from sandbox.wire import dump

Send = Callable[[bytes, str], None]
LONGEST = 300  # characters of a message


def run(module: types.ModuleType, source: str, send: Send) -> NoReturn:
    """Run the test cases of this source in the program's module, and end the process."""
    import unittest

    class Results(unittest.TestResult):
        """Sends the result of each method when it is known."""

        def __init__(self) -> None:
            super().__init__()
            self.worst: tuple[str, str] | None = ("AC", "")  # None: skipped

        def startTest(self, test: Any) -> None:
            super().startTest(test)
            self.worst = ("AC", "")

        def stopTest(self, test: Any) -> None:
            super().stopTest(test)
            self._send(_name(test))

        def addFailure(self, test: Any, error: Any) -> None:
            super().addFailure(test, error)
            self.worst = ("WA", _last_line(self.failures[-1][1]))

        def addError(self, test: Any, error: Any) -> None:
            super().addError(test, error)
            out_of_memory = issubclass(error[0], MemoryError)
            self.worst = ("MLE" if out_of_memory else "RE", _last_line(self.errors[-1][1]))
            if not isinstance(test, unittest.TestCase):  # setUpClass, tearDownClass
                self._send(str(test))

        def addSubTest(self, test: Any, subtest: Any, error: Any) -> None:
            super().addSubTest(test, subtest, error)
            if error is not None:
                failed = issubclass(error[0], test.failureException)
                texts = self.failures if failed else self.errors
                self.worst = ("WA" if failed else "RE", _last_line(texts[-1][1]))

        def addSkip(self, test: Any, reason: str) -> None:
            super().addSkip(test, reason)
            self.worst = None

        def addUnexpectedSuccess(self, test: Any) -> None:
            super().addUnexpectedSuccess(test)
            self.worst = ("WA", "passed, and was expected to fail")

        def _send(self, name: str) -> None:
            if self.worst:
                send(b"M", dump([name[:LONGEST], *self.worst]))

    before = set(map(id, vars(module).values()))
    # takes minutes on long lists, and nobody reads it
    unittest.case.difflib = types.SimpleNamespace(ndiff=lambda *_: ())  # type: ignore[attr-defined]
    try:
        exec(compile(source, "tests.py", "exec", dont_inherit=True), module.__dict__)
        cases = [
            kind
            for kind in vars(module).values()
            if isinstance(kind, type)
            and issubclass(kind, unittest.TestCase)
            and id(kind) not in before
        ]
        tests = map(unittest.defaultTestLoader.loadTestsFromTestCase, cases)
        unittest.TestSuite(unittest.TestSuite(filter(_runs, each)) for each in tests).run(Results())
    except BaseException as error:
        text = f"{type(error).__name__}: {error}"
        send(b"M", dump(["", "RE", f"the tests could not be run: {text}"[:LONGEST]]))
    send(b"R", "")
    os._exit(0)


def _runs(test: Any) -> bool:
    """Whether no decorator skips this method."""
    method = getattr(type(test), test._testMethodName, None)
    return not any(getattr(of, "__unittest_skip__", False) for of in (type(test), method))


def _name(test: Any) -> str:
    return f"{type(test).__name__}.{test._testMethodName}"


def _last_line(trace: str) -> str:
    return (trace.strip().splitlines() or [""])[-1][:LONGEST]
