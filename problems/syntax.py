"""Python source as a tree, and normal forms that compare only its meaning.

A normal form ignores layout, and `shape` also ignores the names that the author chose.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterable
from functools import cache

from artifacts.parsing import parse

RESERVED = frozenset(keyword.kwlist) | frozenset(dir(builtins))
TOKENS = re.compile(
    r"""(?P<skip>\#[^\n]*|\b(?:from|import)\ [^\n]*|\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?''')"""
    r"""|(?P<token>\.?[^\W\d]\w*|\d[\w.]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[^\s\w])""",
    re.VERBOSE,
)
DEFINITION = re.compile(r"^(?:class|def|async def) ", re.MULTILINE)
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")  # fields that hold statements
IMPORTS = (ast.Import, ast.ImportFrom)
NAMING: dict[type[ast.AST], str] = {
    ast.Name: "id",
    ast.arg: "arg",
    ast.Attribute: "attr",
} | dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), "name")
# Fields without an effect on a program's behaviour. Python 3.11, with which the benchmarks'
# fingerprints were computed, has no `type_params`.
WITHOUT_EFFECT = {
    *("type_comment", "type_ignores", "kind", "ctx", "annotation", "returns", "type_params")
}  # fmt: skip


def tree_of(source: str) -> ast.Module | None:
    """Return the tree of a source, or None if it is not Python or is nested too deeply."""
    try:
        return parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def definitions(source: str) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """Return the functions and classes of a source by name; none of a text that is no Python."""
    tree = tree_of(source)
    return {
        node.name: node
        for node in (tree.body if tree else ())
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }


def normal_form(source: str) -> str:
    """Return a form that is equal for sources that differ only in comments, layout and docstrings.

    Quotes are ignored too. If the source is not Python, runs of spaces are collapsed.
    """
    if (tree := tree_of(source)) is None:
        return " ".join(source.split())
    pending: list[ast.AST] = [tree]
    while pending:  # only statements: expressions contain no docstrings
        node = pending.pop()
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:]
        pending += [inner for block in BLOCKS for inner in getattr(node, block, ())]
    return ast.dump(tree).replace(", type_params=[]", "")  # as Python 3.11 writes it


def shape(source: str) -> str:
    """Return `normal_form` that also ignores the source's own names.

    These are the names of its functions, classes, arguments and variables. Annotations, imports and
    string statements are left out too, because they vary between copies. External names (`sorted`,
    `math.gcd`) stay. If the source is not Python, returns its tokens without names.
    """
    written: list[str | tuple[str]] = []
    own: set[str] = set()
    try:
        _write(parse(source), written, own)
    except (SyntaxError, ValueError, RecursionError):
        return " ".join(code_tokens(source))
    numbers: dict[str, str] = {}  # own names are numbered by first occurrence
    for at, part in enumerate(written):
        if type(part) is tuple:
            written[at] = (
                numbers.setdefault(part[0], f" v{len(numbers)}")
                if part[0] in own
                else f" {part[0]}"
            )
    return "".join(written)  # type: ignore[arg-type]  # texts by now


def code_tokens(source: str) -> list[str]:
    """Return the tokens of a program in any language similar to Python.

    Leaves out comments, imports and long strings; a name that is no keyword, builtin or attribute
    becomes `v`.
    """
    matches = [match for match in TOKENS.findall(source) if match[1]]
    return [
        token if not (token[0].isalpha() or token[0] == "_") or token in RESERVED else "v"
        for _, token in matches
    ]


def _write(node: ast.AST, out: list[str | tuple[str]], own: set[str]) -> None:
    """Write a node depth first: its text, and its names as 1-tuples; own names go into `own`."""
    kind = type(node)
    if kind in IMPORTS or (kind is ast.Expr and isinstance(node.value, ast.Constant)):  # type: ignore[attr-defined]
        return
    opening, fields, naming = _plan(kind)  # type: ignore[arg-type]  # types can be hashed
    if naming and not isinstance(getattr(node, "ctx", None), ast.Load):
        own.add(getattr(node, naming))
    out.append(opening)
    for name in fields:
        value = getattr(node, name, None)
        for item in value if type(value) is list else (value,):
            if isinstance(item, ast.AST):
                _write(item, out, own)
            elif type(item) is str and kind is not ast.Constant:
                out.append((item,))
            else:
                out.append(f" {item!r}")
        out.append(",")
    out.append(")")


@cache
def _plan(kind: type[ast.AST]) -> tuple[str, tuple[str, ...], str | None]:
    """Return how a node of this kind begins, its relevant fields, and the field with its name."""
    return (
        f"({kind.__name__}",
        tuple(name for name in kind._fields if name not in WITHOUT_EFFECT),
        NAMING.get(kind),
    )


def used_by(source: str, entry_point: str) -> str:
    """Return the parts of a module that the entry point reaches by name; all of a source without
    this function or class, or with no other.
    """
    name = entry_point.partition("(")[0]
    tree = tree_of(source) if name and len(DEFINITION.findall(source)) > 1 else None
    if tree is None or not (kept := reached(tree, [name])):
        return source
    lines = source.split("\n")
    starts = [
        min([node, *getattr(node, "decorator_list", ())], key=lambda n: n.lineno) for node in kept
    ]
    return "\n".join(
        line
        for start, node in zip(starts, kept, strict=True)
        for line in lines[start.lineno - 1 : node.end_lineno]
    )


def reached(tree: ast.Module, roots: Iterable[str]) -> list[ast.stmt]:
    """Return what binds these names in a module, and the names that it uses, and so on."""
    bound = {name: node for node in tree.body for name in binds(node)}
    waiting, names = [*roots], set[str]()
    while waiting:
        if (name := waiting.pop()) in bound and name not in names:
            names.add(name)
            waiting += names_in(bound[name])
    return list(dict.fromkeys(node for name, node in bound.items() if name in names))


def names_in(node: ast.AST) -> list[str]:
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]


def binds(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module binds."""
    match node:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            return [name]
        case ast.Import(names) | ast.ImportFrom(names=names):
            return [(each.asname or each.name).partition(".")[0] for each in names]
        case ast.Assign() | ast.AnnAssign():
            stored = (each for each in ast.walk(node) if isinstance(each, ast.Name))
            return [each.id for each in stored if isinstance(each.ctx, ast.Store)]
    return []
