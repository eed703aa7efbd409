"""Finds what the names of a unittest's source hold: names that are bound once to a literal or a
computed literal, and never changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from sandbox.decoys.purity import BUILTINS, MODULES, Known
from sandbox.decoys.variants import asserts

# names that a program may have imported, and a test uses from it
USUAL = {
    "string": {"ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "hexdigits",
        "punctuation"}, "math": {"pi", "sqrt"},
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "datetime": {"date", "timedelta", "timezone"}, "decimal": {"Decimal"},
    "fractions": {"Fraction"},
}  # fmt: skip
# they change their first argument
REARRANGE = {"shuffle", "heapify", "heappush", "heappop", "insort", "insort_left", "insort_right"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Shared:
    """What a method shares with others of its class and module, as far as it consists of literals:
    imports, constants of the module, attributes.
    """

    def __init__(self, tree: ast.Module, kind: ast.ClassDef, known: Known) -> None:
        self.imports: list[ast.stmt] = []
        self.functions: list[ast.stmt] = []  # functions that only compute
        self.methods: list[ast.stmt] = []  # methods of the class that only compute
        self.constants: dict[str, ast.Assign] = {}
        self.of_class: dict[str, ast.Assign] = {}
        self.of_set_up: dict[str, ast.Assign] = {}
        patched = _patched(kind)
        for part in tree.body:
            if isinstance(part, (ast.Import, ast.ImportFrom)):
                self._take_import(part, known, patched)
        stored, attributes = stores(tree, functions=False), _attribute_stores(kind)
        defined = {
            part.name for part in tree.body if isinstance(part, (*FUNCTIONS, ast.ClassDef))
        } | stored.keys()
        # redefined here, so not the builtin
        known.modules |= dict.fromkeys(BUILTINS & defined, "?")
        for part in tree.body:
            if (name := name_given(part)) and stored[name] == 1 and known.pure(part.value):  # type: ignore[attr-defined]
                self.constants[name] = part  # type: ignore[assignment]
                known.names.add(name)
        for part in tree.body:
            if (
                isinstance(part, ast.FunctionDef)
                and stored.get(part.name, 0) == 0
                and _only_computes(part, known, set())
            ):
                self.functions.append(part)
                known.names.add(part.name)
        for part in kind.body:
            if (
                (name := name_given(part))
                and attributes.get(name, 0) == 0
                and known.pure(part.value)  # type: ignore[attr-defined]
            ):
                self.of_class[name] = part  # type: ignore[assignment]
                known.attributes.add(name)
        for part in kind.body:
            if (
                isinstance(part, ast.FunctionDef)
                and part.args.args
                and _only_computes(part, known, {part.args.args[0].arg})
            ):
                self.methods.append(part)
                known.attributes.add(part.name)
        ups = [
            part
            for part in kind.body
            if isinstance(part, ast.FunctionDef) and part.name == "setUp" and part.args.args
        ]
        for part in ups[-1].body if ups else ():
            self._take_attribute(part, ups[-1].args.args[0].arg, known, attributes)

    def _take_attribute(
        self, part: ast.stmt, itself: str, known: Known, attributes: dict[str, int]
    ) -> None:
        """Record an attribute that a statement of setUp binds."""
        if not isinstance(part, ast.Assign) or len(part.targets) != 1 or not known.pure(part.value):
            return
        target = part.targets[0]
        own = isinstance(target, ast.Attribute) and ast.unparse(target.value) == itself
        if (
            own
            and isinstance(target, ast.Attribute)
            and attributes[target.attr] == 1
            and target.attr not in self.of_class
        ):
            self.of_set_up[target.attr] = part
            known.attributes.add(target.attr)

    def _take_import(
        self, part: ast.Import | ast.ImportFrom, known: Known, patched: set[str]
    ) -> None:
        kept = False
        for name in part.names:
            if isinstance(part, ast.Import):
                path, bound = (
                    (name.name, name.asname)
                    if name.asname
                    else (name.name.partition(".")[0], name.name.partition(".")[0])
                )
            else:
                path, bound = f"{part.module}.{name.name}", name.asname or name.name
            top = path.partition(".")[0]
            if (
                not {bound, path.rpartition(".")[2], top} & patched
                and (top in MODULES or path.startswith("urllib.parse"))
                and name.name != "*"
            ):
                known.modules[str(bound)] = path
                kept = True
            elif bound in BUILTINS:  # not the builtin of that name
                known.modules[str(bound)] = "?"
        if kept:
            self.imports.append(part)

    def take_usual(self, method: ast.FunctionDef, known: Known, bound: set[str]) -> None:
        """Record modules, and common names from them, that a method uses and its source does not
        import: the program's source does.
        """
        used = {node.id for node in ast.walk(method) if isinstance(node, ast.Name)} - bound
        for name in sorted(used & MODULES):
            known.modules[name] = name
            self.imports.append(ast.Import([ast.alias(name)]))
        for module, names in USUAL.items():
            for name in sorted(used & names):
                known.modules[name] = f"{module}.{name}"
                self.imports.append(ast.ImportFrom(module, [ast.alias(name)], 0))


def _only_computes(function: ast.FunctionDef, known: Known, itself: set[str]) -> bool:
    """Whether a function returns the same for the same arguments in any process: it binds a few
    values and returns a result.
    """
    if function.decorator_list:
        return False
    inside = known.with_names(
        {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)} - itself
    )
    inside.owners = known.owners | itself
    for part in function.body:
        if name := name_given(part):
            if not inside.pure(part.value):  # type: ignore[attr-defined]
                return False
            inside.names.add(name)
        elif not isinstance(part, (ast.Return, ast.Expr)) or not inside.pure(part.value):
            return False
    return isinstance(function.body[-1], ast.Return)


def names_given(tree: ast.Module) -> set[str]:
    """Return the names that this source binds anywhere."""
    names = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    names |= {node.name for node in ast.walk(tree) if isinstance(node, (*FUNCTIONS, ast.ClassDef))}
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return (
        names
        | {
            (alias.asname or alias.name).partition(".")[0]
            for node in imports
            for alias in node.names
        }
        | _patched(tree)
    )


def name_given(part: ast.stmt) -> str:
    """Return the name of `name = value`, or nothing."""
    if (
        isinstance(part, ast.Assign)
        and len(part.targets) == 1
        and isinstance(part.targets[0], ast.Name)
    ):
        return part.targets[0].id
    return ""


def _patched(kind: ast.AST) -> set[str]:
    """Return the parts of all names that are patched anywhere in this class."""
    names: set[str] = set()
    for node in ast.walk(kind):
        if isinstance(node, ast.Call) and "patch" in ast.unparse(node.func):
            texts = [
                argument.value
                for argument in node.args
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            ]
            names.update(
                *(text.split(".") for text in texts),
                *([ast.unparse(node.args[0])] for _ in node.args[:1]),
            )
    return names - {"os", "sys"}  # what is used of these is never patched


def stores(tree: ast.AST, *, functions: bool = True) -> dict[str, int]:
    """Return how often each name is bound or may be changed: through a subscript, an attribute, or
    a method call.
    """
    found: dict[str, int] = {}
    waiting: list[ast.AST] = list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop()
        name = ""
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            name = node.id
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(
            node.ctx, ast.Load
        ):
            name = _root(node)
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
        ):
            rearranged = (
                node.value.args[0]
                if node.value.func.attr in REARRANGE and node.value.args
                else node.value.func
            )
            name = "" if asserts(node.value) else _root(rearranged)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(dict.fromkeys(node.names, 2))
        elif isinstance(node, ast.ExceptHandler) and node.name:
            name = node.name
        if isinstance(node, ast.AugAssign):
            found[_root(node.target)] = 2
        if name:
            found[name] = found.get(name, 0) + 1
        if functions or not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)
    return found


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _attribute_stores(kind: ast.ClassDef) -> dict[str, int]:
    """Return how often an attribute of each name is bound or may be changed anywhere in
    the class.
    """
    found: dict[str, int] = {}
    for node in ast.walk(kind):
        held: ast.expr | None = None
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            found[node.attr] = found.get(node.attr, 0) + 1
            held = node.value
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            held = node.value
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
        ):
            held = node.value.func.value
        elif isinstance(node, ast.AugAssign):
            held = node.target
        while isinstance(held, (ast.Subscript, ast.Attribute)):
            if isinstance(held, ast.Attribute):
                found[held.attr] = found.get(held.attr, 0) + 2
            held = held.value
    return found


def loaded(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that these nodes read."""
    return {
        node.id
        for part in nodes
        for node in ast.walk(part)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def loaded_at_class(body: list[ast.stmt]) -> set[str]:
    """Return the names that the body of a class reads outside the bodies of its methods."""
    return loaded(
        node
        for part in body
        for node in ([*part.decorator_list, part.args] if isinstance(part, FUNCTIONS) else [part])
    )


def attributes_loaded(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the attributes that these nodes read, of any object."""
    return {
        node.attr
        for part in nodes
        for node in ast.walk(part)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
