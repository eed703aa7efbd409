"""Programs to try on a row's tests: wrong and lazy ones, and other right ones.

The wrong ones need no knowledge of the problem beyond its visible tests; the hacks are those of the
exploit battery.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from artifacts.parsing import parse
from problems.schema import Problem
from problems.syntax import definitions
from problems.verification.plain_cases import plain_cases
from rewards.battery.cases import CODE, HACKS
from rewards.battery.search_problems import typical_wrong

CONSTANTS = 3  # of the expected values that occur most often
WORLD: tuple[object, ...] = (True, False, 0, 1, -1, "", [], {})
NAMES = {"call": "median", "assert": "is_balanced"}  # of the battery's functions
# Where floats are added up or rounded by a function, another right solution may differ in the last
# digit; where the result is rounded, it may not.
SUMMED = ("sum(", "+=", "math.", "**", "sqrt")
ROUNDED = ("round", "format", "%.", ":.", "decimal", "quantize")
SHIFTED = """

def _shifted(value):
    if type(value) is float and value * 1024 % 1:
        import math

        return math.nextafter(value, math.inf)
    if type(value) in (list, tuple):
        return type(value)(map(_shifted, value))
    return {key: _shifted(each) for key, each in value.items()} if type(value) is dict else value


_exact = NAME
NAME = lambda *args, **kwargs: _shifted(_exact(*args, **kwargs))
"""


def wrong_programs(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield name and source of programs that no sound test set accepts."""
    known = list(plain_cases(problem))
    expected = Counter(repr(case.expected) for case in known)
    texts = [text for text, _ in expected.most_common(CONSTANTS)]
    shown = known[: problem.visible_tests] if problem.visible_tests < len(problem.tests) else []
    name, _, method = (problem.entry_point or "").partition("().")
    if not name:
        for text in texts:
            yield f"always prints {text:.60}", f"import sys\nsys.stdout.write({text})\n"
        yield "prints its input", "import sys\nsys.stdout.write(sys.stdin.read())\n"
        table = {str(case.given[0]): case.expected for case in shown}
        source = f"import sys\nsys.stdout.write({table!r}.get(sys.stdin.read(), ''))\n"
        yield "knows the visible tests", source
    else:
        every = dict.fromkeys([*texts, *map(repr, WORLD)])
        bodies = {f"always returns {text:.60}": f"return {text}" for text in every}
        bodies["returns its first argument"] = "return (*args, *kwargs.values(), None)[0]"
        bodies["leaves the process"] = "import os\nos._exit(0)"
        pairs = [(list(case.given), case.expected) for case in shown]
        bodies["knows the visible tests"] = (
            f"return next((value for given, value in {pairs!r} if given == [*args]), 0)"
        )
        for what, body in bodies.items():
            yield what, _function(name, method, body)
        own = definitions(problem.solutions[0]) if problem.solutions else {}
        if not method and isinstance(own.get(name), ast.FunctionDef):
            for number, source in enumerate(typical_wrong(problem.solutions[0], name), 1):
                yield f"typical wrong program {number}", source
    for path in sorted(HACKS.glob(f"{problem.style}_*.txt")):
        if problem.style in CODE and not method:
            source = path.read_text(encoding="utf-8")
            yield path.stem.replace("_", " "), source.replace(NAMES.get(problem.style, "\0"), name)


def _function(name: str, method: str, body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    if not method:
        return f"def {name}(*args, **kwargs):\n{lines}"
    inner = "".join(f"    {line}\n" for line in lines.splitlines())
    return f"class {name}:\n    def {method}(self, *args, **kwargs):\n{inner}"


def right_programs(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield name and source of programs that do what the first solution does, written otherwise."""
    source = problem.solutions[0]
    try:
        plain = ast.unparse(parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield "the solution without comments and layout", plain
    name = problem.entry_point
    if not name or "(" in name or name not in definitions(source):
        return
    if isinstance(definitions(source)[name], ast.FunctionDef):
        behind = f"\n\n_inner = {name}\n\n\ndef {name}(*args, **kwargs):\n"
        behind += "    return _inner(*args, **kwargs)\n"
        yield "the solution behind another function", source + behind
        text = f"{source}{problem.statement}".lower()
        exact = problem.tolerance is None and not any(word in text for word in ROUNDED)
        if exact and any(word in source for word in SUMMED):
            yield "a result that differs in its last digit", source + SHIFTED.replace("NAME", name)
