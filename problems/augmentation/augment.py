"""Apply all kinds of augmentation to all parents, compute outputs, and report each attempt."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from problems.augmentation import composed, constant, inverted
from problems.augmentation.draft import Draft, Mutation, problem_of, reason_not_parent
from problems.augmentation.settings import Augmentation, Kind
from problems.funnel import Removed, Stage
from problems.schema import Problem
from problems.verification.outputs import Output, OutputRequest, outputs
from sandbox.sandbox import Runs
from sandbox.wire import encode
from sandbox.worker.compare import same_text

KINDS: dict[Kind, Mutation] = {
    "constant": constant.mutate,
    "inverted": inverted.mutate,
    "composed": composed.mutate,
}
MIN_TESTS, MIN_OUTPUTS = 3, 2  # minimum number of tests, and of different outputs among them


@dataclass(frozen=True)
class Augmented:
    """The result: every attempt is in `problems` or in `refused`.

    not_parents: verified problems that were not used, counted by reason.
    """

    problems: list[Problem]
    refused: list[Removed] = field(default_factory=list)
    not_parents: dict[str, int] = field(default_factory=dict)

    @property
    def stage(self) -> Stage:
        return Stage.counted("augmented", len(self.problems), self.refused)


def augment(
    problems: Sequence[Problem], config: Augmentation, seed: int, sandbox: Runs
) -> Augmented:
    """Derive problems from these, in order of their ids, and report each attempt that failed.

    The order of `problems` does not matter. Random choices depend only on the seed, the kind and
    the parent. Raises problems.verification.outputs.NoOutput when the sandbox failed.
    """
    ordered = sorted(problems, key=lambda problem: problem.problem_id)
    parents = [problem for problem in ordered if not reason_not_parent(problem)]
    problems_by_id: dict[str, Problem] = {}
    refused: list[Removed] = []
    attempts = [
        (f"{parent.problem_id}+{kind}/{n}", _draft(parent, parents, kind, n, seed))
        for parent in parents
        for kind in config.kinds
        for n in range(config.variants)
    ]
    drafts = [(attempt, draft) for attempt, draft in attempts if isinstance(draft, Draft)]
    refused += [
        Removed(attempt, draft, "") for attempt, draft in attempts if isinstance(draft, str)
    ]
    for (attempt, _), result in zip(
        drafts, _finished([draft for _, draft in drafts], sandbox), strict=True
    ):
        if isinstance(result, str):
            refused.append(Removed(attempt, result))
        elif result.problem_id in problems_by_id:
            refused.append(Removed(attempt, "the same as another attempt made", result.problem_id))
        else:
            problems_by_id[result.problem_id] = result
    not_parents = Counter(reason for problem in ordered if (reason := reason_not_parent(problem)))
    return Augmented(
        [problems_by_id[key] for key in sorted(problems_by_id)],
        sorted(refused, key=lambda row: row.problem_id),
        dict(sorted(not_parents.items())),
    )


def _draft(
    parent: Problem, pool: Sequence[Problem], kind: Kind, variant: int, seed: int
) -> Draft | str:
    return KINDS[kind](
        parent, pool, random.Random(f"{seed}/{kind}/{variant}/{parent.content_hash}")
    )


def _finished(drafts: Sequence[Draft], sandbox: Runs) -> list[Problem | str]:
    """Complete each draft with its tests, or say why that fails.

    All programs run in one pass; a program that is the only solution runs twice.
    """
    programs = [
        (at, source)
        for at, draft in enumerate(drafts)
        for source in (draft.solutions if len(draft.solutions) > 1 else draft.solutions * 2)
    ]
    callable_problems = [
        replace(draft.parents[0], entry_point=draft.entry_point) for draft in drafts
    ]
    requests = [
        OutputRequest(callable_problems[at], source, drafts[at].tests) for at, source in programs
    ]
    rows: dict[int, list[list[Output]]] = {}
    for (at, _), program_outputs in zip(programs, outputs(requests, sandbox), strict=True):
        rows.setdefault(at, []).append(program_outputs)
    return [_with_outputs(draft, rows[at]) for at, draft in enumerate(drafts)]


def _with_outputs(draft: Draft, rows: Sequence[Sequence[Output]]) -> Problem | str:
    """Build the problem from the computed outputs.

    rows: one list of outputs per solution, or two of the only solution.
    """
    single, first = len(draft.solutions) == 1, draft.parents[0]
    if not all(
        _same(first, one, other) for row in rows for one, other in zip(rows[0], row, strict=True)
    ):
        return (
            "its reference does not agree with itself" if single else "its references do not agree"
        )
    tests = [
        {**test_input, "expected": settled(output.value, first.compare)}
        for test_input, output in zip(draft.tests, rows[0], strict=True)
        if not output.fault
    ]
    if len(tests) < MIN_TESTS:
        return "its references fail on nearly all inputs"
    if len({output.same for output in rows[0] if not output.fault}) < MIN_OUTPUTS:
        return "the same comes out whatever goes in"
    old_outputs = [Output(test["expected"]) for test in first.tests]
    if draft.differs and all(
        output.fault or _same(first, output, old)
        for output, old in zip(rows[0], old_outputs, strict=True)
    ):
        return "nothing changes on its inputs"
    return problem_of(
        draft,
        tests,
        draft.solutions,
        "one reference, run twice" if single else f"{len(draft.solutions)} references that agree",
    )


def settled(value: Any, compare: str) -> Any:
    """Order the value independently of hashes, where its order does not matter.

    This concerns the keys of a dict, and results that are compared in any order.
    """
    if isinstance(value, dict):
        return {key: settled(value[key], "exact") for key in sorted(value, key=encode)}
    if not isinstance(value, (list, tuple)):
        return value
    items = [settled(item, "exact") for item in value]
    return type(value)(sorted(items, key=encode) if compare in ("unordered", "set") else items)


def _same(problem: Problem, one: Output, other: Output) -> bool:
    """Compare outputs as the problem's tests do; two faults are equal."""
    if one.fault or other.fault:
        return bool(one.fault) == bool(other.fault)
    return same_text(one.same.encode(), other.same.encode(), problem.tolerance, problem.compare)
