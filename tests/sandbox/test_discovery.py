"""Entries of a package are found by their type; a broken one is an error that names its file."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from sandbox.discovery import BrokenEntry, declared, entries, load

ENTRY = "from tests_of_entries import Entry\n"


@dataclass(frozen=True)
class Entry:
    name: str


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """Make a package `parts` of these files."""
    types = ModuleType("tests_of_entries")
    types.Entry = Entry  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, types.__name__, types)
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(**files: str) -> ModuleType:
        (tmp_path / "parts").mkdir()
        for name, text in {"__init__": "", **files}.items():
            (tmp_path / "parts" / f"{name}.py").write_text(text)
        return importlib.import_module("parts")

    yield make
    for name in [name for name in sys.modules if name.split(".")[0] == "parts"]:
        del sys.modules[name]


def test_entries_are_found_by_type(package: Callable[..., ModuleType]) -> None:
    parts = package(
        b=f"{ENTRY}TWO = Entry('two')\n",
        a=f"{ENTRY}from parts.b import TWO\nONE = Entry('one')\n",
        c="NUMBER = 3\n",
    )
    assert entries(parts, Entry, "name") == {"two": Entry("two"), "one": Entry("one")}


def test_two_entries_of_one_name_are_an_error(package: Callable[..., ModuleType]) -> None:
    same = f"{ENTRY}X = Entry('x')\n"
    with pytest.raises(BrokenEntry, match=r"parts/b\.py: 'x' is also .* in parts/a\.py"):
        entries(package(a=same, b=same), Entry, "name")


def test_a_file_that_cannot_be_imported_is_named(package: Callable[..., ModuleType]) -> None:
    with pytest.raises(BrokenEntry, match=r"parts/a\.py: ZeroDivisionError"):
        entries(package(a="1 / 0\n"), Entry)


def test_a_declaration_is_read_without_an_import(
    package: Callable[..., ModuleType], tmp_path: Path
) -> None:
    package(a=f'"""First line.\n\nMore.\n"""\n{ENTRY}1 / 0\nX = Entry(\n    "x", int\n)\n', b="")
    [found] = declared("parts", tmp_path / "parts", Entry).values()
    assert found == ("a", "parts.a", "First line.", ("x", None))


def test_a_loaded_module_without_its_entry_is_named(package: Callable[..., ModuleType]) -> None:
    package(a="")
    with pytest.raises(BrokenEntry, match=r"parts/a\.py: no object of the type Entry"):
        load("parts.a", Entry)
