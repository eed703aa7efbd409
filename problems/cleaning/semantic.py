"""Find gated tasks that a problem repeats in other words or another program.

In: problems and gated tasks. Out: `Overlap`s of the kinds "same behaviour" and "same meaning", at
most one per problem and task. Similarity only proposes; where both have a solution, the sandbox
decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from problems.cleaning.behaviour import Behaviour, alike_everywhere, compare
from problems.cleaning.canonical import canonical
from problems.cleaning.contamination import GatedIndex, Overlap
from problems.cleaning.meaning import (
    ALONE,
    DOUBTED,
    MeaningIndex,
    Near,
    contrasts_in,
    first_program,
    meaning,
    same_meaning,
)
from problems.cleaning.sketch import Sketch
from problems.cleaning.textbook import common
from problems.schema import Problem
from problems.syntax import code_tokens
from sandbox.sandbox import Sandbox

# Equal behaviour is a leak from this similarity of the statements on, lower where each passes the
# other's tests; or where wide inputs show no difference either: from a lower similarity on, or from
# this share of the task's program on, in canonical form.
STATEMENT, STATEMENT_TESTED, STATEMENT_ALIKE, CONTAINED = 0.7, 0.6, 0.5, 0.85
OF_WORDS = ("near statement", "words in a row")
# Of functions that every course has: the similarity of statements, lower where wide inputs show no
# difference, or the size of a copied program.
COMMON_STATEMENT, COMMON_ALIKE, COMMON_TOKENS = 0.8, 0.7, 40


@dataclass
class SemanticIndex:
    """The gated tasks, compared by meaning and behaviour. model: see MeaningIndex."""

    gated: Sequence[Problem]
    model: str = ""
    _meanings: MeaningIndex = field(init=False, repr=False)
    _common: dict[str, str] = field(init=False, repr=False, default_factory=dict)  # by task
    # Ids of problems and tasks that were seen to differ: on an input, and by a contrasting word.
    apart: set[tuple[str, str]] = field(init=False, repr=False, default_factory=set)

    def __post_init__(self) -> None:
        self._meanings = MeaningIndex(self.gated, self.model)

    def overlaps(
        self, problems: Sequence[Problem], sandbox: Sandbox, known: Collection[str] = ()
    ) -> list[Overlap]:
        """Return the overlaps in the order of the problems.

        known: ids of problems that leak already; they are not run. Raises NoOutput if the sandbox
        fails.
        """
        rest = [problem for problem in problems if problem.problem_id not in known]
        if not self.gated or not rest:
            return []
        nearest = self._meanings.nearest(rest)
        candidates = [
            (problem, near) for problem, nears in zip(rest, nearest, strict=True) for near in nears
        ]
        behaviours = compare(
            [(problem, self.gated[near.gated]) for problem, near in candidates], sandbox
        )
        self._find_common(candidates, behaviours, sandbox)
        self.apart |= {
            (problem.problem_id, gated.problem_id)
            for (problem, near), behaviour in zip(candidates, behaviours, strict=True)
            if behaviour.refuted or behaviour.disagreement
            for gated in [self.gated[near.gated]]
            if contrasts_in(meaning(problem)) != contrasts_in(meaning(gated))
        }
        return list(self._judged(self._measured(candidates, behaviours, sandbox), behaviours))

    def _measured(
        self,
        candidates: Sequence[tuple[Problem, Near]],
        behaviours: Sequence[Behaviour],
        sandbox: Sandbox,
    ) -> list[tuple[Problem, Near]]:
        """Add the share of the task's program where both do the same, and whether inputs outside
        the tests' range tell the two apart, where that decides.
        """
        result = [
            (problem, replace(near, contained=self._meanings.contained(problem, near.gated)))
            if behaviour.same
            else (problem, near)
            for (problem, near), behaviour in zip(candidates, behaviours, strict=True)
        ]
        doubted = [
            at
            for at, (_, near) in enumerate(result)
            if behaviours[at].same
            and (
                near.contained >= CONTAINED or STATEMENT_ALIKE <= near.statement < COMMON_STATEMENT
            )
        ]
        pairs = [(result[at][0], self.gated[result[at][1].gated]) for at in doubted]
        for at, alike in zip(doubted, alike_everywhere(pairs, sandbox), strict=True):
            result[at] = result[at][0], replace(result[at][1], alike=alike)
        return result

    def _find_common(
        self,
        candidates: Iterable[tuple[Problem, Near]],
        behaviours: Iterable[Behaviour],
        sandbox: Sandbox,
    ) -> None:
        """Run the textbook's functions on the tasks that matter and are not yet known."""
        tasks = {
            near.gated: self.gated[near.gated]
            for (_, near), behaviour in zip(candidates, behaviours, strict=True)
            if behaviour.same and self.gated[near.gated].problem_id not in self._common
        }
        self._common |= {task.problem_id: "" for task in tasks.values()}
        self._common |= common(list(tasks.values()), sandbox)

    def _judged(
        self, candidates: Iterable[tuple[Problem, Near]], behaviours: Iterable[Behaviour]
    ) -> Iterator[Overlap]:
        for (problem, near), behaviour in zip(candidates, behaviours, strict=True):
            gated = self.gated[near.gated]
            function = self._common.get(gated.problem_id, "")
            if verdict := judge(problem, gated, near, behaviour, bool(function)):
                kind, leak = verdict
                detail = f"statements {near.statement:.2f}, programs {near.program:.2f}"
                if near.contained:
                    detail += f" ({near.contained:.0%} of the task's)"
                if str(behaviour):
                    detail += f"; {behaviour}"
                if function:
                    detail += f"; every course has it: {function}"
                texts = (
                    (problem.solutions[0], gated.solutions[0])
                    if kind == "same behaviour" and problem.solutions and gated.solutions
                    else (problem.statement, gated.statement)
                )
                yield Overlap(problem.problem_id, gated.problem_id, kind, detail, leak, *texts)


def judge(
    problem: Problem, gated: Problem, near: Near, behaviour: Behaviour, common: bool
) -> tuple[str, bool] | None:
    """Return the kind of overlap and whether it is a leak, or None.

    common: the task is a function of every course. A statement alone decides only where no run
    tells the two apart.
    """
    if behaviour.same:
        if common:
            copied = near.alike and near.contained >= CONTAINED and _tokens(gated) >= COMMON_TOKENS
            least = COMMON_ALIKE if near.alike else COMMON_STATEMENT
            return "same behaviour", copied or near.statement >= least
        if same_meaning(problem, gated, near.statement, DOUBTED):
            return "same behaviour", True
        both = behaviour.mine is behaviour.theirs
        return "same behaviour", (
            near.statement >= (STATEMENT_TESTED if both else STATEMENT)
            or (near.alike and (near.contained >= CONTAINED or near.statement >= STATEMENT_ALIKE))
        )
    limits = DOUBTED if behaviour.failed else ALONE
    if same_meaning(problem, gated, near.statement, limits):
        return "same meaning", not (behaviour.different or behaviour.refuted)
    return None


def _tokens(problem: Problem) -> int:
    return len(code_tokens(canonical(first_program(problem))))


class BothIndexes:
    """The gated tasks, compared by words, programs and tests, then by meaning and behaviour."""

    def __init__(self, gated: Sequence[Problem], model: str = "") -> None:
        self.lexical, self.semantic = GatedIndex(gated), SemanticIndex(gated, model)

    def overlaps(
        self,
        problems: Sequence[Problem],
        sandbox: Sandbox,
        own: Sketch | None = None,
        every: bool = False,
    ) -> list[Overlap]:
        """Return the overlaps.

        own: see `GatedIndex.overlaps_of`. every: also run problems that leak already, to name each
        task that they leak; to remove them, one is enough.
        """
        lexical = self.lexical
        overlaps = lexical.overlaps_of(problems, own) if own else lexical.overlaps(problems)
        # Words of a statement are no evidence where a run tells the two apart.
        sure = {one.problem_id for one in overlaps if one.leak and one.kind not in OF_WORDS}
        found = self.semantic.overlaps(problems, sandbox, () if every else sure)
        pairs = [(one, (one.problem_id, one.gated_id)) for one in overlaps]
        apart = self.semantic.apart
        return [
            replace(one, leak=False) if one.kind in OF_WORDS and pair in apart else one
            for one, pair in pairs
        ] + found
