"""Copies of real problems as other collections contain them: renamed, reworded, reordered."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable
from dataclasses import replace

from artifacts.parsing import parse
from problems.cleaning.similarity import programs
from problems.schema import Problem

SYNONYMS = {
    "write a function to": "your task: code that should",
    "write a python function to": "implement something that will",
    "find": "determine",
    "calculate": "work out",
    "check whether": "decide if",
    "check if": "decide whether",
    "given": "supplied",
    "return": "give back",
    "remove": "drop",
    "array": "list",
    "string": "text",
    "element": "item",
    "elements": "items",
    "maximum": "largest",
    "minimum": "smallest",
    "number": "amount",
    "sum": "total",
    "convert": "turn",
    "count": "tell",
    "you are": "we are",
    "integers": "whole numbers",
    "such that": "so that",
    "each": "every",
}
UNRELATED = (
    "Answer as the examples show; everything that is needed follows from them and from common "
    "sense."
)


class Rename(ast.NodeTransformer):
    """Rename every name that the source defines."""

    def __init__(self, tree: ast.AST, rng: random.Random) -> None:
        own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} - {"self"}
        own |= {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        self.names = {
            name: f"{rng.choice(('item', 'value', 'part', 'thing', 'acc'))}{number}"
            for number, name in enumerate(sorted(own))
        }

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self.names.get(node.arg, node.arg), node.annotation)

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        self.generic_visit(node)
        node.arg = self.names.get(node.arg or "", node.arg)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        self.generic_visit(node)
        node.attr = self.names.get(node.attr, node.attr)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.name = self.names.get(node.name, node.name)
        return node


def verbatim(problem: Problem, rng: random.Random) -> Problem:
    return replace(
        problem,
        problem_id=f"planted/{problem.problem_id}",
        source="planted",
        gated=False,
        split="train",
        extra={},
        licence="MIT",
    )


def renamed(problem: Problem, rng: random.Random) -> Problem:
    """Rename functions, arguments and variables in the solutions and in the statement."""
    new_names, solutions = dict[str, str](), []
    for source in programs(problem):
        tree = parse(source)
        rename = Rename(tree, rng)
        solutions.append(ast.unparse(rename.visit(tree)))
        new_names |= rename.names
    statement = re.sub(
        r"[A-Za-z_]\w{2,}", lambda match: new_names.get(match[0], match[0]), problem.statement
    )
    names = (problem.entry_point or "").split("().")
    entry_point = "().".join(new_names.get(name, name) for name in names) or None
    return replace(
        verbatim(problem, rng),
        statement=statement,
        solutions=tuple(solutions),
        entry_point=entry_point,
        starter_code="",
    )


def reworded(problem: Problem, rng: random.Random) -> Problem:
    """Rename, replace four of five words by synonyms and shuffle the sentences."""
    copy = renamed(problem, rng)
    text = copy.statement.lower()
    for word, instead in SYNONYMS.items():
        text = re.sub(
            rf"\b{word}\b",
            lambda match, instead=instead: instead if rng.random() < 0.8 else match[0],  # type: ignore[misc]
            text,
        )
    sentences = re.split(r"(?<=\.)\s+", text)
    rng.shuffle(sentences)
    return replace(copy, statement=" ".join(sentences))


def reordered(problem: Problem, rng: random.Random) -> Problem:
    """Reword and put the tests in another order."""
    tests = [
        {**test, "source": _shuffled(test["source"], rng)} if "source" in test else test
        for test in problem.tests
    ]
    rng.shuffle(tests)
    return replace(reworded(problem, rng), tests=tuple(tests))


def _shuffled(source: str, rng: random.Random) -> str:
    tree = parse(source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            rng.shuffle(node.body)
    return ast.unparse(tree)


WAYS: dict[str, Callable[[Problem, random.Random], Problem]] = {
    "verbatim": verbatim,
    "renamed": renamed,
    "re-worded": reworded,
    "reordered tests": reordered,
}

NO_TESTS = ({"source": "def check(candidate):\n    pass\n"},)
ALONE: dict[
    str, Callable[[Problem, random.Random], Problem]
] = {  # only one part of the problem is left
    "renamed solution alone": lambda problem, rng: replace(
        renamed(problem, rng), statement=UNRELATED, tests=NO_TESTS
    ),
    "re-worded statement alone": lambda problem, rng: replace(
        reworded(problem, rng), solutions=(), tests=NO_TESTS
    ),
    "reordered tests alone": lambda problem, rng: replace(
        reordered(problem, rng), statement=UNRELATED, solutions=()
    ),
}
