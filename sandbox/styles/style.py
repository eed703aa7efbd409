"""A style of tests: how a test is written, sent, decided and shown."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sandbox.reading import Key, is_text, read_keys
from sandbox.worker.attempt import Attempt

Test = dict[str, Any]  # as a problem stores it: the values of its keys
Input = dict[str, Any]  # {"args", "kwargs"} or {"stdin"}
Parse = Callable[[str], ast.Module]  # raises SyntaxError, ValueError and RecursionError

SOURCE = {"source": Key("Python source, as text", is_text, required=True)}


def one(_: Any) -> int:
    return 1


def source_of(test: Test, name: str, compare: str, parse: Parse) -> str:
    return str(test.get("source", test))


def no_inputs(test: Test, parse: Parse) -> list[Input]:
    return []


def no_test(test_input: Input, output: Any) -> Test | None:
    return None


@dataclass(frozen=True)
class Style:
    """One style, in a file of this folder.

    example: a test as JSON, for messages; "" if its tests are not written as objects.
    make: makes a test from the values of its keys; usually the test's dataclass.
    attempt: runs the tests of one job in a worker.
    payload: returns what the worker gets of a test, JSON types only. Raises NotPlain.
    show: returns what a test expects, for people.
    text: returns a whole test for people; `name` is the function's.
    inputs: returns the inputs of a test that are plain data.
    expecting: returns the test that a program gives this output for an input; None if it cannot be
        written.
    """

    name: str
    test: type[Any]
    keys: Mapping[str, Key]
    attempt: type[Attempt]
    show: Callable[[Any], str]
    text: Callable[[Test, str, str, Parse], str] = source_of  # test, name, compare, parse
    inputs: Callable[[Test, Parse], list[Input]] = no_inputs
    expecting: Callable[[Input, Any], Test | None] = no_test
    example: str = ""
    make: Callable[..., Any] | None = None
    payload: Callable[[Any], dict[str, Any]] = asdict
    compares: tuple[str, ...] = ("exact",)  # values of `compare`
    options: tuple[str, ...] = ()  # further keys of the problem that it reads
    has_entry_point: bool = True
    # whether the tests run in the program's process, which can then forge their result
    shared: bool = False
    preload: tuple[str, ...] = ()  # modules that the program's zygote imports
    clocks: Callable[[Any], int] = one  # how many parts of a test have the limits of one test each
    many_rows: bool = False  # whether a test may have several results

    @property
    def is_code(self) -> bool:
        """Whether its tests are Python source, not data."""
        return self.keys is SOURCE

    @property
    def is_check(self) -> bool:
        """Whether a test is a function `check(candidate)`."""
        return self.is_code and not self.many_rows

    def read(self, record: Any) -> Any:
        """Return the test of a record. A text is one with the key `source`. Raises Invalid."""
        if isinstance(record, str) and self.is_code:
            record = {"source": record}
        return (self.make or self.test)(**read_keys(record, self.keys))
