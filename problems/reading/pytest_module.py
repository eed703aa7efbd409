"""Read a pytest module about a solution: each test function becomes one test of style `assert`.

The module stays as it is written, except for the import of the solution, whose names the judge
takes from the program, and for `pytest.raises`, which becomes `assertRaises` of unittest.
`pytest.mark.parametrize` becomes a loop. A module that uses more of pytest needs the package
`pytest` in the sandbox. Fixtures are refused. A subclass of `unittest.TestCase` counts whatever its
name is, as in pytest, and runs with its `setUp`.
"""

from __future__ import annotations

import ast
import builtins

from artifacts.parsing import parse
from problems.columns import ProblemError
from problems.reading.program_imports import take_imports
from problems.reading.source import Record, python
from problems.syntax import definitions


def pytest_tests(source: str, module: str, solution: str, key: str, where: str) -> Record:
    """Return the tests of a pytest module that imports the solution from `module`.

    Without that import, the names are those that the solution defines and the tests use; without a
    solution, those that the module uses and does not define. Raises ProblemError if it is not
    Python, tests nothing, or uses fixtures.
    """
    tree = python(source, f"key {key!r}", where)
    tree.body = [node for node in tree.body if not _starts(node)]
    names = take_imports(tree, module) or _defined(solution, tree) or _undefined(tree)
    cases = _test_cases(tree)
    calls = [call for node in tree.body for call in _calls(node, cases, key, where)]
    if not calls or not names:
        what = "has no test function" if names else "uses nothing of the solution"
        raise ProblemError(f"key {key!r} {what}", "is this a pytest module?", where)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            node.decorator_list = [each for each in node.decorator_list if not _marks(each)]
    tree = ast.fix_missing_locations(_Raises().visit(tree))
    uses_pytest = any(isinstance(node, ast.Name) and node.id == "pytest" for node in ast.walk(tree))
    common = ast.unparse(
        ast.Module([node for node in tree.body if uses_pytest or not _imports_pytest(node)], [])
    )
    return {
        "style": "assert",
        "tests": [{"source": f"{common}\n\ndef check(candidate):\n{call}\n"} for call in calls],
        "entry_point": names[0],
        **({"packages": ["pytest"]} if uses_pytest else {}),
    }


def _defined(solution: str, tests: ast.Module) -> list[str]:
    """Return the functions and classes of the solution that the tests use."""
    used = {node.id for node in ast.walk(tests) if isinstance(node, ast.Name)}
    return [name for name in definitions(solution) if name in used]


def _undefined(tree: ast.Module) -> list[str]:
    """Return the names that a module uses without defining or importing them, in order."""
    nodes = list(ast.walk(tree))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    known = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    # functions, classes, caught exceptions, and captures of patterns
    known |= {node.name for node in nodes if isinstance(getattr(node, "name", None), str)}  # type: ignore[attr-defined]
    known |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    known |= {
        (alias.asname or alias.name).partition(".")[0]
        for node in nodes
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    used = dict.fromkeys(node.id for node in names)
    return [name for name in used if name not in known and not hasattr(builtins, name)]


def _test_cases(tree: ast.Module) -> set[str]:
    """Return the names of the top-level classes that inherit from `unittest.TestCase`."""
    cases = {"TestCase"}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            cases |= {node.name} if bases & cases else set()
    return cases


def _calls(node: ast.stmt, cases: set[str], key: str, where: str) -> list[str]:
    """Return the body of `check` for each test of a top-level statement.

    cases: names of the subclasses of `unittest.TestCase`.
    """
    methods = node.body if isinstance(node, ast.ClassDef) else []
    if any(
        isinstance(each, ast.AsyncFunctionDef) and each.name.startswith("test")
        for each in (node, *methods)
    ):
        raise ProblemError(
            f"key {key!r} has an asynchronous test", "not supported: leave the row out", where
        )
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
        return [_call(node, node.name, 0, key, where)]
    if isinstance(node, ast.ClassDef) and node.name in cases:
        return [
            f"    {node.name}.setUpClass()\n    {node.name}({part.name!r}).debug()"
            for part in node.body
            if isinstance(part, ast.FunctionDef) and part.name.startswith("test")
        ]
    if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
        own = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        setup = [name for name in ("setup_class", "setup_method") if name in own]
        begin = f"    tests = {node.name}()\n" + "".join(f"    tests.{each}()\n" for each in setup)
        return [
            begin + _call(part, f"tests.{part.name}", 1, key, where)
            for part in node.body
            if isinstance(part, ast.FunctionDef) and part.name.startswith("test")
        ]
    return []


def _call(node: ast.FunctionDef, name: str, skipped: int, key: str, where: str) -> str:
    """Return the call of a test function, in a loop over its parameters if it has any."""
    parameters = [each.arg for each in node.args.args[skipped:]]
    if not parameters:
        return f"    {name}()"
    for mark in node.decorator_list:
        match mark:
            case ast.Call(
                func=ast.Attribute(attr="parametrize"), args=[ast.Constant(str(written)), values]
            ) if sorted(each.strip() for each in written.split(",")) == sorted(parameters):
                names = written if "," in written else f"{written},"
                each = "values" if "," in written else "(values,)"
                call = ", ".join(f"{parameter}={parameter}" for parameter in parameters)
                return (
                    f"    for values in {ast.unparse(values)}:\n"
                    f"        {names} = {each}\n        {name}({call})"
                )
    raise ProblemError(
        f"key {key!r}: {node.name} needs {', '.join(parameters)}",
        "fixtures are not supported: leave the row out",
        where,
    )


def _starts(node: ast.stmt) -> bool:
    """Return whether it is `if __name__ == "__main__"`, which calls pytest."""
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def _marks(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).startswith("pytest.mark.")


def _imports_pytest(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and [alias.name for alias in node.names] == ["pytest"]


class _Raises(ast.NodeTransformer):
    """Replace `pytest.raises(E, match=m)` by `assertRaises` or `assertRaisesRegex` of unittest."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.func) != "pytest.raises":
            return node
        match = [keyword.value for keyword in node.keywords if keyword.arg == "match"]
        name = "assertRaisesRegex" if match else "assertRaises"
        function = parse(f"__import__('unittest').TestCase().{name}").body[0]
        assert isinstance(function, ast.Expr)
        return ast.Call(function.value, [*node.args[:1], *match, *node.args[1:]], [])

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`with pytest.raises(E) as caught`: unittest calls `caught.value` `caught.exception`."""
        self.generic_visit(node)
        if (
            node.attr == "value"
            and isinstance(node.value, ast.Name)
            and node.value.id in self.caught
        ):
            return ast.Attribute(node.value, "exception", node.ctx)
        return node

    def __init__(self) -> None:
        self.caught = set[str]()

    def visit_With(self, node: ast.With) -> ast.AST:
        self.caught |= {
            item.optional_vars.id
            for item in node.items
            if isinstance(item.optional_vars, ast.Name)
            and ast.unparse(item.context_expr).startswith("pytest.raises")
        }
        return self.generic_visit(node)
