"""Python source as a tree, and as what is left of it when only the meaning counts: without layout, or without the names that its author chose too."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import warnings
from collections.abc import Iterator

SPOKEN = frozenset(keyword.kwlist) | frozenset(dir(builtins))
TOKENS = re.compile(
    r"""(?P<skip>\#[^\n]*|\b(?:from|import)\ [^\n]*|\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?''')"""
    r"""|(?P<token>\.?[^\W\d]\w*|\d[\w.]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[^\s\w])""",
    re.VERBOSE,
)
UNSAID = {"type_comment", "type_ignores", "kind", "ctx", "annotation", "returns"}  # fields that change nothing of what a program does


def parse(source: str) -> ast.Module:
    """The tree. Raises SyntaxError, ValueError (a null byte) or RecursionError (nested too deep). Old escapes like "\\d" bring no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def normal_form(source: str) -> str:
    """The same for two sources that differ in comments, layout, quotes and docstrings alone. Of what is no Python, the spaces are squeezed."""
    try:
        tree = parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return " ".join(source.split())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def shape(source: str) -> str:
    """As `normal_form`, and the same whatever names the source gives to its own functions, classes, arguments and variables.

    Annotations, imports and plain texts that stand as statements are left out too: they move between copies. Names that come from elsewhere
    (`sorted`, `math.gcd`) stay. Of what is no Python, the tokens without its names.
    """
    try:
        tree = parse(source)
        own = dict.fromkeys(_bound(tree), "")
        written: list[str] = []
        _write(tree, own, written)
    except (SyntaxError, ValueError, RecursionError):
        return " ".join(code_tokens(source))
    return "".join(written)


def code_tokens(source: str) -> list[str]:
    """Tokens of a program in any language much like Python, without comments, imports and long texts; a name that is neither a keyword, a builtin
    nor an attribute is `v`."""
    found = [match for match in TOKENS.findall(source) if match[1]]
    return [token if not (token[0].isalpha() or token[0] == "_") or token in SPOKEN else "v" for _, token in found]


def _bound(tree: ast.AST) -> Iterator[str]:
    """Names that the source itself gives."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.attr


def _write(value: object, own: dict[str, str], out: list[str]) -> None:
    """Depth first; a name of one's own is numbered by where it first occurs."""
    if isinstance(value, ast.AST):
        if isinstance(value, (ast.Import, ast.ImportFrom)) or (isinstance(value, ast.Expr) and isinstance(value.value, ast.Constant)):
            return
        out.append(f"({type(value).__name__}")
        for name in value._fields:
            if name not in UNSAID:
                out.append(",")
                field = getattr(value, name, None)
                out.append(repr(field)) if isinstance(value, ast.Constant) else _write(field, own, out)
        out.append(")")
    elif isinstance(value, list):
        out.append("[")
        for item in value:
            _write(item, own, out)
        out.append("]")
    elif isinstance(value, str) and value in own:
        own[value] = own[value] or f"v{sum(map(bool, own.values()))}"
        out.append(own[value])
    else:
        out.append(repr(value))
