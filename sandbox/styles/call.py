"""Style `call`: a function is called, and its result compared outside the program's process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.reading import Key
from sandbox.styles.source_text import call_text, literal
from sandbox.styles.style import Style
from sandbox.verdict import Verdict
from sandbox.wire import NotPlain, encode, frame
from sandbox.worker.attempt import Attempt
from sandbox.worker.checker import Checker
from sandbox.worker.compare import same_text
from sandbox.worker.messages import Result, exception, not_loaded, row
from sandbox.worker.watch import Stop

ORDERS = {"unordered": "  # in any order", "set": "  # in any order, however often each"}


@dataclass(frozen=True)
class CallTest:
    """`entry_point(*args, **kwargs)` must return `expected`. Values are plain data: None, bool,
    int, float, str, bytes, list, tuple, set, dict.
    """

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    expected: Any = None


class CallAttempt(Attempt):
    """Sends all calls at once; each result starts the clock of the next test."""

    def run(self) -> list[Result]:
        self.checker = Checker(self.processes, b"call")
        results = self._results()
        results = self.checker.decide(results)
        self.unusable = self.checker.unusable
        return results

    def _results(self) -> list[Result]:
        count = len(self.tests)
        request = self.processes.header()
        request += b"".join(frame(test["call"].encode()) for test in self.tests)
        results: list[Result] = []
        with self.processes.started("call", request, count, answers=count) as watch:
            loaded = watch.next()
            if isinstance(loaded, Stop) or loaded[:1] != b"L":
                return [row(*not_loaded(loaded), watch)]
            for at, test in enumerate(self.tests):
                message = watch.next()
                results.append(row(*self._decide(message, at, test), watch))
                if isinstance(message, Stop):
                    break
                watch.begin()
        return results

    def _decide(self, message: bytes | Stop, at: int, test: dict[str, Any]) -> tuple[Verdict, str]:
        if isinstance(message, Stop):
            return message.verdict, message.detail
        kind, body = message[:1], message[1:]
        text = body[:200].decode("utf-8", "replace")
        if kind == b"X":
            return exception(body)
        if kind == b"N":
            return Verdict.WA, f"the result is not plain data: {text}"
        if kind not in (b"R", b"T"):
            return Verdict.RE, "broken message"
        want = test["want"].encode()
        if self.job["checker"]:
            return self.checker.store(at, test["call"].encode(), body, want)
        try:
            right = same_text(body, want, self.job["tolerance"], self.job["compare"])
        except NotPlain as error:
            return Verdict.RE, str(error)
        except RecursionError:
            return Verdict.WA, "nested deeper than what was expected"
        return (Verdict.AC, "") if right else (Verdict.WA, f"got {text}")


def make(args: Any = (), kwargs: dict[str, Any] | None = None, expected: Any = None) -> CallTest:
    return CallTest(tuple(args), kwargs or {}, expected)


def payload(test: CallTest) -> dict[str, Any]:
    """Return the test with its values encoded. Raises NotPlain."""
    return {"call": encode([list(test.args), test.kwargs]), "want": encode(test.expected)}


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


STYLE = Style(
    "call",
    CallTest,
    {
        "args": Key("a list", lambda value: isinstance(value, (list, tuple))),
        "kwargs": Key("an object with text keys", _is_object),
        "expected": Key("plain data", lambda value: True, required=True, nullable=True),
    },
    CallAttempt,
    show=lambda test: repr(test.expected),
    text=lambda test, name, compare, parse: (
        f"assert {call_text(name, test)} == {literal(test['expected'])}{ORDERS.get(compare, '')}"
    ),
    inputs=lambda test, parse: [
        {"args": list(test.get("args", ())), "kwargs": test.get("kwargs") or {}}
    ],
    expecting=lambda test_input, output: test_input | {"expected": output},
    example='{"args": [1], "expected": 2}',
    make=make,
    payload=payload,
    compares=("exact", "unordered", "set"),
    options=("checker", "tolerance"),
)
