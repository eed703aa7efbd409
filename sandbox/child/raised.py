"""Exceptions of a program, as its tests see them: by name, with base classes, arguments, attributes
and message.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from sandbox.wire import NotPlain, Tree, decode

Fill = Callable[[Any, dict[str, Any]], None]


class ProgramRaised(Exception):
    """The program raised something that has no class on the tests' side."""


class Exceptions:
    """The classes of exceptions that the tests and a program know by name."""

    def __init__(self, own: Callable[[str], type | None], fill: Fill) -> None:
        """own: returns the tests' own class of a name. fill: sets attributes, as they were sent."""
        self._own, self._fill = own, fill
        self._made: dict[str, type] = {}

    def kind(self, body: Any) -> type:
        """Return the class for [name, bases]; a base is the name of a builtin exception, or again
        such a pair. Raises NotPlain.
        """
        name, told = str(body[0])[:40], body[1]
        if type(told) is not list or not 0 < len(told) < 10:
            raise NotPlain("broken message: no exception")
        bases = tuple(
            self.kind(base) if type(base) is list else getattr(builtins, str(base), None)
            for base in told
        )
        if not all(isinstance(base, type) and issubclass(base, Exception) for base in bases):
            raise NotPlain("broken message: no exception")
        if name not in self._made:
            self._made[name] = type(name, bases, {"__module__": "program", "__str__": _said})  # type: ignore[arg-type]
        return self._made[name]

    def made(self, told: Any) -> BaseException:
        """Return the exception that `held.exception_tree` describes; a ProgramRaised if it cannot
        be built here. Raises NotPlain for an invalid description.
        """
        name, text, out_of_memory, bases, args, attributes = told
        if type(name) is not str or type(text) is not str:
            raise NotPlain("broken message: no exception")
        try:
            kind = MemoryError if out_of_memory else self._named(name, bases)
            given = decode(args) if type(args) is str else [text]
            made = kind(*given) if kind.__module__ == "builtins" else kind.__new__(kind, *given)
            made.args = tuple(given)
            self._fill(
                made, {"said": text} | (decode(attributes) if type(attributes) is str else {})
            )
        except (NotPlain, TypeError, ValueError, AttributeError):
            return ProgramRaised(f"{name}: {text}")
        return made

    def _named(self, name: str, bases: Tree) -> type[BaseException]:
        """Return the tests' own class, a builtin one, or one made with these bases. Raises
        NotPlain.
        """
        known = self._own(name) or self._made.get(name)
        if known is not None and issubclass(known, Exception):
            return known
        found = getattr(builtins, name, None)
        if isinstance(found, type) and issubclass(found, (Exception, SystemExit)):
            return found
        return self.kind([name, bases])


def _said(error: BaseException) -> str:
    """Return the message of an exception of the program, as its own class made it."""
    return str(vars(error).get("said", ""))
