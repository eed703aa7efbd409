"""The code that a result depends on: the files of a module, and a hash of what they do."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

from artifacts.parsing import parse


def parts(module: Path) -> list[Path]:
    """Return this module and those beside it that it needs, sorted: modules that they import
    anywhere, and files that they name (`"worker.py"`).
    """
    files, pending = set[Path](), [module]
    while pending:
        path = pending.pop()
        if path not in files:
            files.add(path)
            pending += [
                beside for name in _named(path) if (beside := path.with_name(name)).is_file()
            ]
    return sorted(files)


def hash_code(path: Path) -> str:
    """Return the sha256 of a module's code; comments, docstrings and layout do not count."""
    tree = parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [statement for statement in body if not _is_text(statement)]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _named(path: Path) -> set[str]:
    """Return the file names of modules that this one may need from its own folder."""
    package, names = path.parent.name, set[str]()
    for node in ast.walk(parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {
                alias.name.rpartition(".")[2]
                for alias in node.names
                if alias.name.startswith(f"{package}.")
            }
        elif isinstance(node, ast.ImportFrom) and node.module == package:
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}."):
            names.add((node.module or "").rpartition(".")[2])
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.endswith(".py")
        ):
            names.add(node.value.removesuffix(".py"))
    return {f"{name}.py" for name in names if name.isidentifier()}
