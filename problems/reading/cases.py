"""Read tests in the forms in which datasets publish them.

- an object with lists `inputs` and `outputs`, and `fn_name` if a function is called (APPS, TACO,
  Eurus, PRIME), or lists `input` and `output` (ScaleBox), or lists `stdin` and `stdout` (KodCode);
- a list of objects with `input` and `output`, and `type` or `testtype`, `fn_name` or
  `metadata.func_name` (LiveCodeBench, SYNTHETIC, DeepCoder, open-r1);
- a list of Python texts with `assert` statements (AceCode), or an object with `assert_case`, such a
  list (verl);
- an object with `functional`, a text that defines `check` and calls it (rLLM's LeetCode rows) or
  that has `assert` statements, perhaps in functions that it calls (Guru).

Each may be JSON text, or Python text of the same value. The arguments of a call are a list, or text
with one JSON value on each line.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from problems.columns import ProblemError
from problems.encoding import encode
from problems.reading.asserts import check
from problems.reading.input_output import (
    CONSTANTS,
    IMPORTS,
    MAX_TESTS,
    as_upstream,
    call_tests,
    entry_point,
    python_3,
    stdio_tests,
)
from problems.reading.leetcode_nodes import nodes_for
from problems.reading.source import Record, python
from problems.syntax import tree_of
from sandbox.reading import shown

FUNCTIONAL = ("functional", "function_call")
DEF = re.compile(r"^[ \t]*def (\w+)\(", re.MULTILINE)
PYTHON = re.compile(r"[\[({'\"]")  # the beginning of a Python literal that is no JSON
HELPERS = (
    *("collections", "math", "itertools", "functools", "operator", "json", "re", "string"),
    *("copy", "datetime", "decimal", "fractions"),
)
LISTS = (("stdin", "stdout"), ("input", "output"))  # other names of `inputs` and `outputs`


def value_of(written: Any, key: str, where: str) -> Any:
    """Return the value of JSON or Python text, and any other value as it is.

    Raises ProblemError naming the key.
    """
    if not isinstance(written, str):
        return written
    try:
        return json.loads(written)
    except (ValueError, RecursionError) as error:
        reason = str(error)
    try:
        return ast.literal_eval(written)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise ProblemError(
            f"key {key!r} holds neither JSON nor a Python literal ({reason})"[:200],
            "fetch the file again",
            where,
        ) from None


def read_tests(
    written: Any, key: str, where: str, name: str | None = None, code: str = ""
) -> Record:
    """Return style, tests, entry point and what belongs to them.

    name: the function that is called, if the tests do not name it. code: starter code or solution,
    which shows whether the function is a method of upstream's class. Raises ProblemError.
    """
    value = value_of(written, key, where)
    if isinstance(value, Mapping):
        for given, expected in LISTS:
            if "inputs" not in value and isinstance(value.get(given), list):
                value = {**value, "inputs": value[given], "outputs": value.get(expected)}
        if "inputs" in value:
            name = value.get("fn_name") or name
            return _pairs(value["inputs"], value.get("outputs"), name, {""}, where, code)
        if isinstance(value.get("functional"), str):
            return _checked(value["functional"], key, where)
        value = value.get("assert_case") or value
    return _listed(value, key, where, name, code)


def _listed(value: Any, key: str, where: str, name: str | None, code: str) -> Record:
    """Return what `read_tests` returns, from a list of tests."""
    if not isinstance(value, list) or not value:
        raise ProblemError(f"key {key!r} is {shown(value)}", "expected a list of tests", where)
    if all(isinstance(test, str) for test in value):
        return asserts(value, key, where)
    if not all(isinstance(test, Mapping) and {"input", "output"} <= set(test) for test in value):
        raise ProblemError(
            f"key {key!r}: not every test has an input and an output",
            "fetch the file again",
            where,
        )
    kinds = {str(test.get("type") or test.get("testtype") or "") for test in value}
    named = [test.get("fn_name") or _metadata(test).get("func_name") for test in value]
    called = next(filter(None, named), name)
    if any(each and each != called for each in named):
        raise ProblemError(
            f"key {key!r} calls more than one function", "give each a row of its own", where
        )
    functional = bool(kinds & {*FUNCTIONAL}) or (kinds == {""} and called is not None)
    called = called or _only_function(code)
    if functional and len(kinds) > 1:
        raise ProblemError(
            f"key {key!r} mixes tests of {' and '.join(sorted(kinds))}",
            "fetch the file again",
            where,
        )
    if functional and not called:
        raise ProblemError(
            f"key {key!r} calls a function that nothing names",
            "give its name under fn_name, or func_name of metadata",
            where,
        )
    inputs, outputs = ([test[side] for test in value] for side in ("input", "output"))
    return _pairs(inputs, outputs, called if functional else None, kinds, where, code)


def _only_function(code: str) -> str | None:
    """Return the name of the function in the code, if there is one only; the code may break off."""
    names = set(DEF.findall(code))
    return names.pop() if len(names) == 1 else None


def asserts(written: Sequence[str], key: str, where: str) -> Record:
    """Return tests of style assert from Python texts about one function or class."""
    trees = [python(test, f"key {key!r}", where, "fix the test") for test in written]
    names = [_called(tree) for tree in trees]
    everywhere = [name for name in names[0] if all(name in others for others in names)]
    # a helper such as Counter is the function only if the test calls nothing else
    name = min(everywhere or names[0], key=_is_helper, default=None)
    if name is None:
        raise ProblemError(f"key {key!r} calls no function", "fix the tests", where)
    return {
        "style": "assert",
        "tests": [
            check(test, name, _imports(tree, name))
            for test, tree in zip(written[:MAX_TESTS], trees, strict=False)
        ],
        "entry_point": name,
    }


def _checked(source: str, key: str, where: str) -> Record:
    """Return the test of a text that defines `check` and ends with `check(function)`, or that has
    assertions.
    """
    tree = tree_of(source)
    match tree:
        case ast.Module([*_, ast.Expr(ast.Call(ast.Name("check"), [function])) as call]) if (
            ast.unparse(function) not in _assigned(tree)
        ):
            lines = re.split("\r\n|\r|\n", source)  # as Python counts them
            defined = "\n".join(lines[: call.lineno - 1])
            return {
                "style": "assert",
                "tests": [{"source": f"{defined.rstrip()}\n"}],
                "entry_point": ast.unparse(function),
                "starter_code": f"{IMPORTS}{nodes_for(source)}",
            }
        case ast.Module(body) if _runs_assertions(statements := [*_as_main(body)]):
            return asserts([ast.unparse(ast.Module(statements, []))], key, where)
    reason = f"key {key!r} runs no assertion, and does not end with check(function)"
    raise ProblemError(reason, "fix the test", where)


def _assigned(tree: ast.Module) -> set[str]:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}


def _as_main(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a script: `if __name__ == "__main__":` is true."""
    for node in body:
        match node:
            case ast.If(ast.Compare(ast.Name("__name__")), inner):
                yield from inner
            case _:
                yield node


def _runs_assertions(body: Sequence[ast.stmt]) -> bool:
    """Return whether there is an assertion, or every function with assertions is called."""
    tests = {
        node.name
        for node in body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(each, ast.Assert) for each in ast.walk(node))
    }
    called = {ast.unparse(node) for node in body if isinstance(node, ast.Expr)}
    if any(isinstance(node, ast.Assert) for node in body):
        return True
    return bool(tests) and called.issuperset(f"{name}()" for name in tests)


def solved(record: Record, solutions: Sequence[str]) -> Record:
    """Add solutions to tests: the first few that are Python 3, after the starter code."""
    prompt = record.get("starter_code", "")
    valid = python_3(solutions, prompt)
    return record | {
        "solutions": list(valid),
        "extra": {"upstream_solutions": len(solutions)} | record.get("extra", {}),
    }


def _pairs(
    inputs: Any, outputs: Any, name: str | None, kinds: set[str], where: str, code: str
) -> Record:
    """Return tests from inputs and outputs. name: of the function, None for a program."""
    paired = isinstance(inputs, list) and isinstance(outputs, list)
    extra = {"upstream_tests": len(inputs)} if paired else {}
    if name is None:
        return {
            "style": "stdio",
            "tests": list(stdio_tests(inputs, outputs, where)),
            "compare": "tokens",
            "extra": extra,
        }
    texts = paired and _texts(inputs)
    if texts:
        inputs = [_arguments(text, "function_call" in kinds, where) for text in inputs]
        outputs = _results(outputs, where, "functional" not in kinds)
    tests, checker = call_tests(inputs, outputs, where), None
    if "functional" not in kinds:
        tests, checker = as_upstream(tests)
    return {
        "style": "call",
        "tests": [encode(test) for test in tests],
        "entry_point": entry_point(str(name), code),
        "starter_code": IMPORTS,
        "checker": checker,
        "extra": extra,
    }


def _arguments(written: str, listed: bool, where: str) -> Any:
    """Return the arguments in a text: one JSON value on each line, or one list of all."""
    lines = [line.strip() for line in written.split("\n") if line.strip()]
    values = [value_of(line, f"arguments {line[:60]}", where) for line in lines]
    return values[0] if listed and len(values) == 1 and isinstance(values[0], list) else values


def _texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _results(written: Sequence[Any], where: str, keep_constants: bool) -> list[Any]:
    """Return the values of results: of JSON text, or of Python text if each of them is one.

    Other text stays text. keep_constants: so do constants such as "True" where nothing else is
    expected; `as_upstream` accepts both then. Raises ProblemError for JSON that Python cannot read,
    such as a number of 5,000 digits.
    """
    values, rest = list(written), list[int]()
    for at, text in enumerate(written):
        try:
            values[at] = json.loads(text)
        except (json.JSONDecodeError, TypeError):
            rest += [at] if isinstance(text, str) else []
        except (ValueError, RecursionError) as error:
            raise ProblemError(
                f"a result cannot be read ({error})"[:200], "leave the row out", where
            ) from error
    if keep_constants and all(text in CONSTANTS for text in written):
        return values
    if not all(written[at] in CONSTANTS or PYTHON.match(written[at]) for at in rest):
        return values
    try:
        literals = {at: ast.literal_eval(written[at]) for at in rest}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return values
    return [literals.get(at, value) for at, value in enumerate(values)]


def _metadata(test: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = test.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _is_helper(name: str) -> bool:
    """Return whether a module that tests compare results with has this name."""
    return _module(name) is not None


def _module(name: str) -> str | None:
    return next((each for each in HELPERS if hasattr(import_module(each), name)), None)


def _imports(tree: ast.Module, function: str) -> str:
    """Return the imports of the helpers that a test uses: published tests rely on the program's."""
    used = [name for name in _called(tree) if name != function]
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return "\n".join(
        [f"import {module}" for module in HELPERS if module in named]
        + [f"from {_module(name)} import {name}" for name in used if _module(name)]
    )


def _called(tree: ast.Module) -> list[str]:
    """Return the names that a test calls, without builtins and its own functions, in order."""
    own = {
        node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    calls = [
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    return [
        name for name in dict.fromkeys(calls) if not hasattr(builtins, name) and name not in own
    ]
