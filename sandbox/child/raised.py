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


class ProgramGone(BaseException):
    """The program's process is gone. A BaseException: `except Exception` must not catch it."""


class NoResult(ProgramRaised):
    """The program's answer cannot be sent as data."""


class Exceptions:
    """The classes of exceptions that the tests and a program know by name."""

    def __init__(self, own: Callable[[str], type | None], fill: Fill) -> None:
        """own: returns the tests' own class of a name. fill: sets attributes, as they were sent."""
        self._own, self._fill = own, fill
        self._classes: dict[str, type] = {}

    def kind(self, body: Any) -> type:
        """Return the class for [name, bases]; a base is the name of a builtin exception, or again
        such a pair. Raises NotPlain.
        """
        name, base_trees = str(body[0])[:40], body[1]
        if type(base_trees) is not list or not 0 < len(base_trees) < 10:
            raise NotPlain("broken message: no exception")
        bases = tuple(
            self.kind(base) if type(base) is list else getattr(builtins, str(base), None)
            for base in base_trees
        )
        if not all(isinstance(base, type) and issubclass(base, Exception) for base in bases):
            raise NotPlain("broken message: no exception")
        if name not in self._classes:
            self._classes[name] = type(name, bases, {"__module__": "program", "__str__": _message})  # type: ignore[arg-type]
        return self._classes[name]

    def build(self, description: Any) -> BaseException:
        """Return the exception that `object_handles.exception_tree` describes, or a ProgramRaised
        if it cannot be built here. Raises NotPlain for an invalid description.
        """
        name, text, out_of_memory, bases, args, attributes = description
        if type(name) is not str or type(text) is not str:
            raise NotPlain("broken message: no exception")
        try:
            kind = MemoryError if out_of_memory else self._class_of(name, bases)
            arguments = decode(args) if type(args) is str else [text]
            error = (
                kind(*arguments)
                if kind.__module__ == "builtins"
                else kind.__new__(kind, *arguments)
            )
            error.args = tuple(arguments)
            self._fill(
                error, {"said": text} | (decode(attributes) if type(attributes) is str else {})
            )
        except (NotPlain, TypeError, ValueError, AttributeError):
            return ProgramRaised(f"{name}: {text}")
        return error

    def _class_of(self, name: str, bases: Tree) -> type[BaseException]:
        """Return the tests' own class, a builtin one, or one made with these bases. Raises
        NotPlain.
        """
        known = self._own(name) or self._classes.get(name)
        if known is not None and issubclass(known, Exception):
            return known
        builtin = getattr(builtins, name, None)
        if isinstance(builtin, type) and issubclass(builtin, (Exception, SystemExit)):
            return builtin
        return self.kind([name, bases])


def _message(error: BaseException) -> str:
    """Return the message of an exception of the program, as its own class made it."""
    return str(vars(error).get("said", ""))
