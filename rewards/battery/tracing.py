"""Record the texts and numbers that a reward compares completions with.

A reward file is loaded a second time, with every expression reported as it is evaluated. This also
shows phrases that are assembled at run time, wherever the file passes them. For a reward class, the
constants of its methods are read. What a reward compares by hash stays unknown.
"""

from __future__ import annotations

import ast
import copy
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from artifacts.parsing import parse
from rewards.battery.patterns import example
from rewards.composite import CompositeReward, Reward
from rewards.own import OwnReward

RECORD = "__ratchet_see__"
LONGEST, MAX_TEXTS, NUMBERS, DEEPEST = 200, 150, 20, 2


@dataclass
class Trace:
    """Texts in the order seen, examples of the patterns among them, and numbers."""

    texts: dict[str, None] = field(default_factory=dict)
    numbers: dict[int, None] = field(default_factory=dict)

    def record(self, value: Any, depth: int = 0) -> Any:
        """Record a value, and return it."""
        if isinstance(value, str | bytes | re.Pattern):
            self._text(value)
        elif (
            type(value) in (list, tuple, set, frozenset, dict)
            and depth < DEEPEST
            and len(value) <= 100
        ):
            for item in sorted(value, key=repr) if isinstance(value, set | frozenset) else value:
                self.record(item, depth + 1)
            if isinstance(value, dict):
                self.record(tuple(value.values()), depth + 1)
        return value

    def _text(self, value: str | bytes | re.Pattern[Any]) -> None:
        source = value.pattern if isinstance(value, re.Pattern) else value
        text = source.decode("latin-1") if isinstance(source, bytes) else str(source)
        if text.strip() and len(text) <= LONGEST and len(self.texts) < MAX_TEXTS:
            self.texts[text] = None

    def forget(self, texts: Iterable[str], completions: Sequence[str]) -> None:
        """Drop those of the texts that are parts of the completions themselves."""
        for text in texts:
            if any(text in completion for completion in completions):
                del self.texts[text]

    def phrases(self) -> list[str]:
        """Return the texts, and texts that match them as patterns."""
        return list(
            dict.fromkeys(
                part
                for text in self.texts
                for part in (text, example(text))
                if part and part.strip()
            )
        )


def traced(reward: Reward, trace: Trace) -> Reward:
    """Return an equivalent reward whose texts and numbers are recorded in `trace`.

    Constants in its source are recorded at once; a reward file also reports what it evaluates while
    it runs.
    """
    if isinstance(reward, OwnReward):
        copied = copy.copy(reward)
        copied._reward = _instrumented(reward.path, trace).reward
        return copied
    for kind in type(reward).__mro__:
        if kind not in (Reward, CompositeReward, object):
            for function in vars(kind).values():
                if code := getattr(function, "__code__", None):
                    _constants(code, trace)
    return reward


def _constants(code: CodeType, trace: Trace) -> None:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _constants(constant, trace)
        elif (
            type(constant) in (int, float)
            and 1 < constant <= 50_000
            and len(trace.numbers) < NUMBERS
        ):
            trace.numbers[int(constant)] = None
        else:
            trace.record(constant)


def _instrumented(path: Path, trace: Trace) -> Any:
    tree = parse(path.read_bytes())
    _constants(compile(tree, str(path), "exec", dont_inherit=True), trace)
    module = ModuleType(f"ratchet_traced_{path.stem}")
    module.__file__ = str(path)
    setattr(module, RECORD, trace.record)
    sys.modules[module.__name__] = module  # data classes look up their module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        code = compile(
            ast.fix_missing_locations(_Reporting().visit(tree)),
            str(path),
            "exec",
            dont_inherit=True,
        )
    exec(code, vars(module))
    return module


class _Reporting(ast.NodeTransformer):
    """Wrap every expression that is read as SEE(expression), where the grammar allows it."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        reads = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if reads and isinstance(
            node,
            ast.Call
            | ast.BinOp
            | ast.Name
            | ast.Attribute
            | ast.Subscript
            | ast.Constant
            | ast.JoinedStr,
        ):
            return ast.copy_location(ast.Call(ast.Name(RECORD, ast.Load()), [node], []), node)  # type: ignore[arg-type]
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        return ast.copy_location(ast.Call(ast.Name(RECORD, ast.Load()), [node], []), node)

    def _plain(self, node: ast.AST) -> ast.AST:
        return node

    visit_MatchValue = visit_MatchMapping = visit_MatchClass = _plain

    def visit_Module(self, node: ast.Module) -> ast.AST:
        node.body = list(self._bodies(node.body))
        return node

    def _bodies(self, body: Iterable[ast.stmt]) -> Iterable[ast.stmt]:
        for at, statement in enumerate(body):
            text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
            yield statement if (text and at == 0) or future else self.visit(statement)
