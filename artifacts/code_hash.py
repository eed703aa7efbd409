"""The code that a result depends on: the files that a module imports, and a hash of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from artifacts.distribution import PREFIX
from artifacts.hashing import hash_data, hash_text
from artifacts.parsing import parse

ROOT = Path(__file__).resolve().parent.parent
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|.*)|import[ \t]+(.*))", re.MULTILINE
)
NAMED = re.compile(r"""["'](\w+(?:\.\w+)+)["']""")
FILE = re.compile(r"""["'/](\w+\.py)["']""")


def parts(module: Path, packages: Collection[str] = ()) -> list[Path]:
    """Return this module and the modules of these packages that it needs, sorted.

    A module needs those that it imports anywhere, directly or not, and those that it names in a
    string (`"worker.py"` of its own package, `"rewards.worker"`).
    packages: the top-level packages that are followed, where a package that is imported as a whole,
    as for discovery, counts with all its modules. Default: only the modules of its own package.
    """
    followed = frozenset(packages or [module.relative_to(_root(module.parent)).parts[0]])
    files, pending = set[Path](), [module]
    while pending:
        path = pending.pop()
        if path not in files:
            files.add(path)
            pending += _needed(path, followed, whole=bool(packages))
    return sorted(files)


def hash_code(path: Path) -> str:
    """Return the sha256 of a module's code; comments, docstrings and layout do not count."""
    tree = parse(_text(path))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [statement for statement in body if not _is_text(statement)]  # type: ignore[attr-defined]
    return hash_text(ast.dump(tree))


@cache
def hash_modules(names: tuple[str, ...], packages: tuple[str, ...]) -> str:
    """Return a hash of these modules and of all that they need of these packages, once a process.

    Comments count, because the whole tree is read in a tenth of a second, but parsed in two.
    """
    paths = [name.removeprefix(PREFIX).replace(".", "/") for name in names]
    modules = [ROOT / f"{path}.py" for path in paths]
    files = sorted({file for module in modules for file in parts(module, packages)})
    return hash_data([[str(file.relative_to(ROOT)), _digest(file)] for file in files])


@cache
def _digest(path: Path) -> str:
    return hash_text(_text(path))


def _text(path: Path) -> str:
    """Return a module's text. Its names are the same in both distributions."""
    return path.read_text(encoding="utf-8").replace("ratchet.", "")


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


@cache
def _needed(path: Path, followed: frozenset[str], whole: bool) -> list[Path]:
    """Return the files that a module needs. whole: of a package that it imports, all modules."""
    root = _root(path.parent)
    names = {name for name in _named(path) if name.partition(".")[0] in followed}
    files = [file for name in names for file in _files(root, name, whole)]
    package = root / path.relative_to(root).parts[0]
    return files + [
        file for name in FILE.findall(_text(path)) for file in _sources(package).get(name, ())
    ]


def _named(path: Path) -> Iterator[str]:
    """Yield the dotted names that a module imports or contains as a string."""
    text = _text(path)
    for module, names, modules in IMPORT.findall(text):
        if module:
            yield module
            yield from (f"{module}.{name}" for name in re.findall(r"\w+", names))
        else:
            yield from re.findall(r"[\w.]+", modules)
    yield from NAMED.findall(text)


@cache
def _files(root: Path, name: str, whole: bool) -> list[Path]:
    place = root.joinpath(*name.split("."))
    if whole and "." in name and (place / "__init__.py").is_file():
        return sorted(place.glob("*.py"))
    module = place.with_suffix(".py")
    return [module] if module.is_file() else []


@cache
def _sources(package: Path) -> dict[str, list[Path]]:
    """Return the files of a package by their names."""
    files: dict[str, list[Path]] = {}
    for file in sorted(package.rglob("*.py")):
        files.setdefault(file.name, []).append(file)
    return files


@cache
def _root(package: Path) -> Path:
    """Return the folder that holds the top-level package of this one."""
    above = package.parent
    inside = above != ROOT and (above / "__init__.py").is_file()
    return _root(above) if inside else above
