"""Which files of a folder a module consists of: what has to be hashed where a result depends on code."""

from __future__ import annotations

import ast
from pathlib import Path

from artifacts.parsing import parse


def parts(module: Path) -> list[Path]:
    """This module and those beside it that it needs, sorted: what they import anywhere, and what they name as a file (`"worker.py"`)."""
    found, waiting = set[Path](), [module]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += [
                beside for name in _named(path) if (beside := path.with_name(name)).is_file()
            ]
    return sorted(found)


def _named(path: Path) -> set[str]:
    """File names of modules that this one may need from its own folder."""
    room, names = path.parent.name, set[str]()
    for node in ast.walk(parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {
                alias.name.rpartition(".")[2]
                for alias in node.names
                if alias.name.startswith(f"{room}.")
            }
        elif isinstance(node, ast.ImportFrom) and node.module == room:
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{room}."):
            names.add((node.module or "").rpartition(".")[2])
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.endswith(".py")
        ):
            names.add(node.value.removesuffix(".py"))
    return {f"{name}.py" for name in names if name.isidentifier()}
