"""A style of tests: how a test is written, sent, decided and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sandbox.reading import Key, is_text, read_keys
from sandbox.worker.attempt import Attempt

SOURCE = {"source": Key("Python source, as text", is_text, required=True)}


def one(_: Any) -> int:
    return 1


@dataclass(frozen=True)
class Style:
    """One style, in a file of this folder.

    make: makes a test from the values of its keys; usually the test's dataclass.
    attempt: runs the tests of one job in a worker.
    payload: returns what the worker gets of a test, JSON types only. Raises NotPlain.
    show: returns what a test expects, for people.
    """

    name: str
    test: type[Any]
    keys: Mapping[str, Key]
    attempt: type[Attempt]
    show: Callable[[Any], str]
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

    def read(self, record: Any) -> Any:
        """Return the test of a record. A text is one with the key `source`. Raises Invalid."""
        if isinstance(record, str) and self.is_code:
            record = {"source": record}
        return (self.make or self.test)(**read_keys(record, self.keys))
