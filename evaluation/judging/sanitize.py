"""`evalplus.sanitize` (0.3.1): a completion's longest run of lines that is Python, reduced to
imports and what the entry point needs.

Written on `ast`, where upstream has tree-sitter: its input is valid Python by then. It has all of
upstream's behaviour: decorated functions, functions without a `return`, `from __future__` and plain
top-level statements are removed, and the first definition of a name wins.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from artifacts.parsing import parse

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


def sanitize(text: str, entry_point: str) -> str:
    """Return the sanitized program; the longest run of Python lines if it has no definition."""
    code = longest(text)
    return (needed(code, entry_point).strip()) or code


def longest(text: str) -> str:
    """Return the run of two or more lines with the most non-blank ones that parses, the first of
    several; the first line if no run parses.
    """
    lines = text.split("\n")
    filled = [0]
    for line in lines:
        filled.append(filled[-1] + bool(line.strip()))
    best, most = (0, 0), 0
    for begin in range(len(lines)):
        if filled[-1] - filled[begin] <= most:
            break
        for end in range(len(lines) - 1, begin, -1):
            if filled[end + 1] - filled[begin] <= most:
                break
            if not (lines[end].strip() or end == begin + 1) or not _parses(
                "\n".join(lines[begin : end + 1])
            ):
                continue
            best, most = (begin, end), filled[end + 1] - filled[begin]
            break
    return "\n".join(lines[best[0] : best[1] + 1])


def needed(code: str, entry_point: str) -> str:
    """Return imports, and the definitions that the entry point reaches through the names they use;
    "" for invalid code, or without any.
    """
    code = code if _parses(code) else code.strip()  # upstream's parser reads on over a wrong indent
    if not _parses(code):
        return ""
    body = parse(code).body
    imports = [
        node
        for node in body
        if isinstance(node, ast.Import)
        or (isinstance(node, ast.ImportFrom) and node.module != "__future__")
    ]
    named: dict[str | None, Definition] = {}
    for node in body:
        if isinstance(node, Definition) and _counts(node):
            named.setdefault(_name(node), node)
    reached, waiting = {entry_point}, [entry_point]
    while waiting:
        if (used := named.get(waiting.pop(0))) is not None:
            new = set(_identifiers(used)) - reached
            reached |= new
            waiting += new
    lines = code.encode("utf-8", "surrogatepass").split(b"\n")
    nodes: list[ast.stmt] = [*imports, *(node for name, node in named.items() if name in reached)]
    return "\n".join(_source(node, lines) for node in nodes)


def _parses(code: str) -> bool:
    try:
        parse(code)
    except (SyntaxError, MemoryError, ValueError, RecursionError):
        return False
    return True


def _counts(node: Definition) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return not node.decorator_list and any(
            isinstance(each, ast.Return) for each in ast.walk(node)
        )
    return not (isinstance(node, ast.ClassDef) and node.decorator_list)


def _name(node: Definition) -> str | None:
    """Return the name of a definition: for an assignment its target, else its value, if a name."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    name = next((each for each in (target, node.value) if isinstance(each, ast.Name)), None)
    return name.id if name else None


def _identifiers(node: ast.AST) -> Iterator[str]:
    """Yield every name in a node, including attributes and keywords."""
    for each in ast.walk(node):
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            value = getattr(each, field, None)
            if isinstance(value, str):
                yield from value.split(".")
        if isinstance(each, ast.Global | ast.Nonlocal):
            yield from each.names


def _source(node: ast.stmt, lines: list[bytes]) -> str:
    begin, end = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    piece = [*lines[begin:end], lines[end][: node.end_col_offset]]
    piece[0] = piece[0][node.col_offset :]
    return b"\n".join(piece).decode("utf-8", "surrogatepass")
