"""Prepares each test method of a unittest: its source alone, its two parts (decoys/split.py), its
decoys (decoys/decoys.py).

A method that skips itself before it uses the program is dropped, as it would be for any program. To
find out, the method is run in a process without a program.
"""

from __future__ import annotations

import ast
import os
import signal
from typing import Any, NoReturn

from sandbox.decoys.decoys import alone, decoys, find_test_methods, proves_nothing
from sandbox.decoys.split import split

TRIAL_S = 2
SKIPS = 77  # exit status of such a run


class _Called(BaseException):
    """The program would be called now."""


def methods(source: str, entry: str, *, inexact: bool = False) -> list[dict[str, Any]]:
    """Return for each test method: name, text, doing and checks (the two parts, or nothing), hides,
    decoys. Raises SyntaxError and other errors of ast.parse.

    inexact: whether a method that hides values may need decoys too (`Attempt._method`). It gets
        only those that expect another value.
    """
    tree = ast.parse(source)
    skipping = "skip" in source.lower()
    return [
        _variants(tree, name, c, m, inexact)
        for name, c, m in find_test_methods(tree)
        if not (skipping and _skips(ast.unparse(alone(tree, c, m)), entry))
    ]


def together(source: str, names: list[str], hiding: list[str]) -> list[dict[str, Any]]:
    """Return for each of these test methods the text of all of them (the same for each), and the
    decoys of this method among the others.

    hiding: methods whose expected value is hidden, where they are judged alone. They get only
        decoys that expect another value.
    """
    tree = ast.parse(source)
    places = {name: (c, m) for name, c, m in find_test_methods(tree) if name in names}
    others = frozenset(places.values())
    text = ast.unparse(alone(tree, *places[names[0]], others))
    variants = []
    for name in names:
        weak, only_values = proves_nothing(tree, *places[name]), name in hiding
        found = decoys(tree, *places[name], only_values=only_values, others=others)
        variants.append({"text": text, "decoys": [] if weak else [*map(ast.unparse, found)]})
    return variants


def _variants(tree: ast.Module, name: str, c: int, m: int, inexact: bool) -> dict[str, Any]:
    text, weak = ast.unparse(alone(tree, c, m)), proves_nothing(tree, c, m)
    parts = None if weak else split(alone(tree, c, m), c, tree.body[c].body[m])  # type: ignore[attr-defined]
    variants: dict[str, Any] = {"name": name, "text": text, "decoys": []}
    variants |= {"doing": "", "checks": "", "hides": False}
    if parts:
        variants |= parts._asdict()
    if (inexact or not variants["hides"]) and not weak:
        found = decoys(tree, c, m, only_values=variants["hides"])
        variants["decoys"] = [*map(ast.unparse, found)]
    return variants


def _skips(text: str, entry: str) -> bool:
    """Whether this method skips itself before there is a program."""
    if not (child := os.fork()):
        _try(text, entry)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == SKIPS


def _try(text: str, entry: str) -> NoReturn:
    import unittest

    def called(*_: Any, **__: Any) -> NoReturn:
        raise _Called

    signal.alarm(TRIAL_S)
    skipped = False
    try:
        space: dict[str, Any] = {"__name__": "tests", entry: called}
        exec(compile(text, "tests", "exec", dont_inherit=True), space)
        result = unittest.TestResult()
        for kind in list(space.values()):
            if isinstance(kind, type) and issubclass(kind, unittest.TestCase):
                unittest.defaultTestLoader.loadTestsFromTestCase(kind).run(result)
        skipped = bool(result.skipped)
    except BaseException:
        skipped = False
    os._exit(SKIPS if skipped else 0)
