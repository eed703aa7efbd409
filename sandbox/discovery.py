"""Find the entries of a package: the module-level objects of one type in its files.

A new entry is a new file, and nothing else names it. `entries` imports all files of a package.
`declared` reads their text instead, where importing all of them takes long or needs packages that
may be missing; `load` then imports one. It is in `sandbox` because every package may import that.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class BrokenEntry(RuntimeError):
    """An entry that cannot be used; the message names its file."""


class Declared(NamedTuple):
    """An entry that was read from its file's text: `NAME = Type(...)` at the left margin."""

    name: str  # of the file, or of the folder with an `__init__.py`
    module: str
    summary: str  # first line of the file's docstring
    arguments: tuple[Any, ...]  # the positional ones; None for what is no literal


def entries(package: ModuleType, kind: type[T], key: str | None = None) -> dict[str, T]:
    """Return the package's objects of this type, in alphabetical order of their files.

    key: the attribute that names an object; by default, its file's name does. Raises BrokenEntry
    for a file that cannot be imported, and for two objects with the same name.
    """
    found: dict[str, tuple[str, T]] = {}
    for module in pkgutil.iter_modules(package.__path__):
        name = f"{package.__name__}.{module.name}"
        for entry in _objects(name, kind):
            entry_name = getattr(entry, key) if key else module.name
            file, other = found.setdefault(entry_name, (_file(name), entry))
            if other is not entry:
                raise BrokenEntry(
                    f"{_file(name)}: {entry_name!r} is also the name of a {kind.__name__} in "
                    f"{file}: give it another name"
                )
    return {name: entry for name, (_, entry) in found.items()}


def declared(package: str, folder: Path, kind: type) -> dict[str, Declared]:
    """Return the declarations of this type in a package's folder, by name, without any import.

    Raises BrokenEntry for a declaration that is no Python.
    """
    pattern = re.compile(rf"^\w+ = {kind.__name__}\(.*(?:\n[ )].*)*", re.MULTILINE)
    by_name = {}
    for file in sorted([*folder.glob("*.py"), *folder.glob("*/__init__.py")]):
        text = file.read_text(encoding="utf-8")
        if (match := pattern.search(text)) is None:
            continue
        name = file.parent.name if file.stem == "__init__" else file.stem
        try:
            arguments = tuple(_arguments(match[0]))
        except SyntaxError as error:
            raise BrokenEntry(f"{file}: {match[0]!r}: {error}") from error
        summary = text.removeprefix('"""').split("\n", 1)[0].removesuffix('"""')
        by_name[name] = Declared(name, f"{package}.{name}", summary, arguments)
    return by_name


def load(module: str, kind: type[T]) -> T:
    """Import a module and return its object of this type. Raises BrokenEntry if it has none."""
    for entry in _objects(module, kind):
        return entry
    raise BrokenEntry(f"{_file(module)}: no object of the type {kind.__name__}")


def _objects(name: str, kind: type[T]) -> Iterator[T]:
    try:
        module = importlib.import_module(name)
    except (ImportError, BrokenEntry):  # the first names what is missing, the second its file
        raise
    except Exception as error:
        raise BrokenEntry(f"{_file(name)}: {type(error).__name__}: {error}") from error
    for value in vars(module).values():
        if isinstance(value, kind):
            yield value


def _arguments(statement: str) -> Iterator[Any]:
    [assignment] = ast.parse(statement).body
    assert isinstance(assignment, ast.Assign) and isinstance(assignment.value, ast.Call)
    for argument in assignment.value.args:
        yield argument.value if isinstance(argument, ast.Constant) else None


def _file(module: str) -> str:
    return f"{module.replace('.', '/')}.py"
