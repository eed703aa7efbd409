"""The code that a result depends on: the files of a module, and a hash of what they do."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from artifacts.parsing import parse


def parts(module: Path) -> list[Path]:
    """Return this module and those of its package that it needs, sorted: modules that they import
    anywhere, and files beside them that they name (`"worker.py"`).
    """
    files, pending = set[Path](), [module]
    while pending:
        path = pending.pop()
        if path not in files:
            files.add(path)
            pending += [needed for needed in _needed(path) if needed.is_file()]
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


def _needed(path: Path) -> Iterator[Path]:
    """Yield where the modules of its own package that this one imports or names may be."""
    package = path.parent
    while (package.parent / "__init__.py").is_file():
        package = package.parent
    for node in ast.walk(parse(path.read_text(encoding="utf-8"))):
        for name in _imported(node):
            if name.startswith(f"{package.name}."):
                yield package.parent.joinpath(*name.split(".")).with_suffix(".py")
        if isinstance(node, ast.Constant) and re.fullmatch(r"\w+\.py", str(node.value)):
            yield path.with_name(str(node.value))


def _imported(node: ast.AST) -> list[str]:
    """Return the dotted names that an import may load as modules."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []
