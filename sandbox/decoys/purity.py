"""Decides which expressions of a unittest have the same value in another process as beside the
program: literals, and values computed from literals.

All other expressions are questions about what the program has done, which only its process can
answer.
"""

from __future__ import annotations

import ast
import builtins

MODULES = {
    "ast", "base64", "binascii", "bisect", "calendar", "cmath", "collections", "copy", "datetime",
    "decimal", "fractions", "functools", "hashlib",
    "heapq", "hmac", "html", "itertools", "json", "math", "numbers", "operator", "os", "re",
    "statistics", "string", "struct", "sys", "textwrap",
    "types", "unicodedata", "urllib.parse", "zlib", "zoneinfo",
}  # fmt: skip
OF_OS = {
    "os.path.join",
    "os.path.basename",
    "os.path.dirname",
    "os.path.splitext",
    "os.path.normpath",
    "os.path.split",
    "os.sep",
    "os.linesep",
}
OF_SYS = {"sys.platform", "sys.maxsize", "sys.version_info", "sys.float_info", "sys.byteorder"}
# differ from one moment or machine to another
MOMENTS = {"now", "today", "utcnow", "astimezone", "fromtimestamp", "timestamp", "set_trace"}
ASIDE = {
    "open", "input", "print", "exec", "eval", "compile", "globals", "locals", "vars", "dir", "id",
    "hash", "iter", "next", "super", "__import__",
    "setattr", "delattr", "getattr", "breakpoint", "exit", "quit", "help", "object", "memoryview",
    "staticmethod", "classmethod", "property",
}  # fmt: skip
BUILTINS = {name for name in vars(builtins) if not name.startswith("_")} - ASIDE
SHAPES = (
    ast.Tuple, ast.List, ast.Set, ast.Dict, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.IfExp, ast.Subscript, ast.Slice, ast.Starred,
    ast.FormattedValue, ast.JoinedStr, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.Load,
    ast.keyword,
)  # fmt: skip
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Known:
    """The names that are known at one place of a test's source."""

    def __init__(self, itself: str, kind: str) -> None:
        """itself: the method's name for its instance. kind: the name of its class."""
        self.itself, self.owners = itself, {itself, kind}
        self.names: set[str] = set()  # variables
        self.attributes: set[str] = set()  # of the instance or the class
        # What a name imports, as a dotted path; "?" for anything else with that name.
        self.modules: dict[str, str] = {}
        self.values: dict[str, ast.expr] = {}  # values of the method's variables
        self.lent: set[str] = set()  # What the program's process has too, and may have changed.
        self.written: set[int] = set()  # ids of statements that only bind such a value to a name

    def with_names(self, names: set[str]) -> Known:
        """Return a copy with these variables added."""
        inside = Known("", "")
        vars(inside).update(vars(self), names=self.names | names)
        return inside

    def may_differ(self, node: ast.expr) -> bool:
        """Whether the program had this value and can have changed it."""
        held = isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in self.lent
        value = self.values.get(node.id) if isinstance(node, ast.Name) else None
        return held and not isinstance(
            value, (ast.Constant, ast.JoinedStr, ast.BinOp, ast.UnaryOp, ast.Compare)
        )

    def is_bare(self, node: ast.expr) -> bool:
        """Whether anyone could guess this value: nothing, or next to nothing."""
        if isinstance(node, ast.Name):
            node = self.values.get(node.id, node)
        try:
            return ast.literal_eval(node) in (None, 0, "", b"", (), [], {}, 1)
        except (ValueError, TypeError, RecursionError, MemoryError):
            return isinstance(node, ast.Call) and not node.args and not node.keywords

    def pure(self, node: ast.AST | None, bound: frozenset[str] = frozenset()) -> bool:
        """Whether this node has the same value in any process. bound: names that an enclosing
        comprehension or lambda binds.
        """
        if node is None or isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return (
                node.id in bound
                or node.id in self.names
                or (node.id in BUILTINS and node.id not in self.modules)
                or self._imported(node.id)
            )
        if isinstance(node, ast.Attribute):
            return self._attribute(node, bound)
        if isinstance(node, ast.Call):
            return self.pure(node.func, bound) and all(
                self.pure(part, bound) for part in (*node.args, *node.keywords)
            )
        if isinstance(node, COMPREHENSIONS):
            return self._comprehension(node, bound)
        if isinstance(node, ast.Lambda):
            return self.pure(
                node.body,
                bound | {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)},
            )
        return isinstance(node, SHAPES) and all(
            self.pure(part, bound) for part in ast.iter_child_nodes(node)
        )

    def _attribute(self, node: ast.Attribute, bound: frozenset[str]) -> bool:
        if node.attr.startswith("_") or node.attr in MOMENTS:
            return False
        if isinstance(node.value, ast.Name) and node.value.id in self.owners:
            return node.attr in self.attributes
        path = self.path(node)
        return self._allowed(path) if path else self.pure(node.value, bound)

    def path(self, node: ast.expr) -> str:
        """Return the dotted path of an imported value, or nothing."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id, "")
        inner = self.path(node.value) if isinstance(node, ast.Attribute) else ""
        return f"{inner}.{node.attr}" if inner and isinstance(node, ast.Attribute) else ""

    def _imported(self, name: str) -> bool:
        path = self.modules.get(name, "")
        return bool(path) and path not in MODULES and self._allowed(path)

    def _allowed(self, path: str) -> bool:
        top = path.partition(".")[0]
        if top in ("os", "sys"):
            return path in OF_OS | OF_SYS
        return top in MODULES or path.startswith("urllib.parse.")

    def _comprehension(self, node: ast.expr, bound: frozenset[str]) -> bool:
        for generator in node.generators:  # type: ignore[attr-defined]
            if not self.pure(generator.iter, bound):
                return False
            bound |= {part.id for part in ast.walk(generator.target) if isinstance(part, ast.Name)}
            if not all(self.pure(part, bound) for part in generator.ifs):
                return False
        results = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)  # type: ignore[attr-defined]
        return all(self.pure(part, bound) for part in results)
