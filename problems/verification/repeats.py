"""Run solutions again with other seeds (`Job.seed`), to see whether a verdict varies.

Each solution runs at least `repeats` times. One that uses sets, a clock or draws runs more often:
the order of a set is often the same by chance, and a test of a draw often passes.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from problems.schema import Problem
from problems.syntax import tree_of
from sandbox.protocol import Report, Verdict
from sandbox.sandbox import Runs
from sandbox.seeding import HASH_SEEDS, hash_seed

SET_RUNS = 1 + 2 * HASH_SEEDS
DRAW_RUNS = 25  # a test that fails one run in ten is missed one time in fourteen
REPEATS_S = 20.0  # for the additional runs of a solution
SETS = {"set", "frozenset", "hash"}
ADDRESSES = {"id", "object"}
# Modules that compute the same from the same arguments. Any other may read a clock or draw.
STEADY = {
    "__future__", "abc", "array", "ast", "bisect", "builtins", "calendar", "cmath", "collections",
    "contextlib", "copy", "dataclasses", "decimal", "difflib", "enum", "fractions", "functools",
    "hashlib", "heapq", "html", "io", "itertools", "json", "keyword", "math", "numbers", "numpy",
    "operator", "pandas", "re", "sortedcontainers", "statistics", "string", "struct", "sys",
    "textwrap", "types", "typing", "typing_extensions", "unicodedata", "unittest", "zlib",
}  # fmt: skip
DRAWS = {"random", "sample", "now", "today"}  # attributes of steady modules that are not steady


def repeat_solutions(
    problems: Sequence[Problem],
    reports: Sequence[Sequence[Report]],
    sandbox: Runs,
    repeats: Sequence[int],
) -> list[list[Report]]:
    """Return the reports on the solutions of each problem, with the verdicts of all runs.

    A report is that of the first run that failed, as in `Sandbox.run`.

    reports: on the first run of each solution, with seed 0; none is INFRA.
    repeats: for each problem, the runs of each solution. With 1, no solution runs again.
    """
    runs = [
        [
            _count(problem, solution, report, least)
            for solution, report in zip(problem.solutions, first, strict=True)
        ]
        for problem, first, least in zip(problems, reports, repeats, strict=True)
    ]
    most = max((count for row in runs for count in row), default=1)
    jobs = (  # jobs with the same hash seed follow each other: they share a zygote
        replace(
            problem.job(problem.solutions[which], f"{at}/{which}/{seed}"),
            seed=0 if problem.gated else seed,
        )
        for seed in sorted(range(1, most), key=hash_seed)
        for at, problem in enumerate(problems)
        for which, count in enumerate(runs[at])
        if seed < count
    )
    again = {report.job_id: report for report in sandbox.run(jobs)} if most > 1 else {}
    return [
        [
            _merged([report, *(again[f"{at}/{which}/{seed}"] for seed in range(1, count))])
            for which, (report, count) in enumerate(zip(first, runs[at], strict=True))
        ]
        for at, first in enumerate(reports)
    ]


def _count(problem: Problem, solution: str, report: Report, least: int) -> int:
    """Return the number of runs of a solution.

    Tasks of a benchmark only run with the seed that completions are judged with.
    """
    if least == 1 or problem.gated:
        return least
    affordable = int(REPEATS_S / max(report.wall_s, 0.01))
    return max(least, min(runs_needed(problem, solution), affordable))


def _merged(reports: Sequence[Report]) -> Report:
    judged = [report for report in reports if report.verdict is not Verdict.INFRA]
    worst = next((report for report in judged if report.verdict is not Verdict.AC), judged[0])
    return replace(worst, verdicts=tuple(report.verdict for report in judged))


def runs_needed(problem: Problem, solution: str) -> int:
    """Return how many runs show whether the verdict of this solution varies."""
    texts = [solution, problem.starter_code, problem.checker or ""]
    texts += [test["source"] for test in problem.tests if "source" in test]
    uses = [_uses(text) for text in texts]
    imported, names, attributes = (set[str]().union(*part) for part in zip(*uses, strict=True))
    if imported & (names | {"*"}) or names & ADDRESSES or attributes & DRAWS:
        return DRAW_RUNS
    return SET_RUNS if names & SETS else 1


@cache
def _uses(text: str) -> tuple[set[str], set[str], set[str]]:
    """Return the names bound by imports of unsteady modules, all names, and all attributes.

    A display of a set counts as the name `set`.
    """
    if (tree := tree_of(text)) is None:
        return set(), set(), set()
    nodes = [*ast.walk(tree)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    if any(isinstance(node, (ast.Set, ast.SetComp)) for node in nodes):
        names.add("set")
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return {name for node in nodes for name in _unsteady(node)}, names, attributes


def _unsteady(node: ast.AST) -> list[str]:
    """Return the names that an import binds to unsteady modules or their parts."""
    if isinstance(node, ast.ImportFrom):
        modules = [node.module or ""] * len(node.names)
    elif isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    else:
        return []
    return [
        (alias.asname or alias.name).partition(".")[0]
        for module, alias in zip(modules, node.names, strict=True)
        if module.partition(".")[0] not in STEADY
    ]
