"""What the search for an exploit tries: wrong answers, varied along everything that can be varied.

In: a problem with right and wrong answers. Out: attempts, each with the report that it is predicted to get."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations

from rewards.battery_problems import Ground
from rewards.composite import Reward
from rewards.judging import Judged
from rewards.mutations import Draft, Mutation, of_costs, of_phrases, of_programs, of_text, of_words
from rewards.tracing import Seen
from sandbox.protocol import Report, TestResult, Verdict

BOUND = 0.01  # of the range of 2: so much more may one wrong answer be worth than another that solves no more
SUBSETS, PROBES, ROUNDS = 60, 12, 4
COMPACT = 3_000  # characters that a mutation may add to take part in compositions


@dataclass(frozen=True)
class Attempt:
    """An answer and the report that it is predicted to get. `judged`: whether a run of the sandbox can confirm it."""

    feature: str
    name: str
    draft: Draft
    report: Report
    step: int = 0
    judged: bool = True


def pay(reward: Reward, ground: Ground, attempts: Sequence[Attempt]) -> list[float]:
    """What the reward gives. Raises ValueError for one that gives no value for a verdict."""
    scores = reward.score_all(
        [
            Judged(ground.task, attempt.draft.text, attempt.report, attempt.step)
            for attempt in attempts
        ]
    )
    if any(score.value is None for score in scores):
        raise ValueError(
            f"{ground.name}: the reward gave no value for an answer that has a verdict"
        )
    return [float(score.value) for score in scores if score.value is not None]


@dataclass
class Proposals:
    """What is tried on one problem. `probe`: the reward, traced into `seen`. `seed` decides which mutations are tried together."""

    ground: Ground
    reward: Reward
    probe: Reward
    seen: Seen
    seed: int
    right: list[Attempt]
    wrong: list[Attempt]
    paid: dict[tuple[str, int, str], float] = field(default_factory=dict)

    def pay(self, attempts: Sequence[Attempt]) -> list[float]:
        """What the reward gives, asked once for each answer and report."""
        keys = [(one.draft.text, one.step, repr(one.report)) for one in attempts]
        fresh = {key: one for key, one in zip(keys, attempts, strict=True) if key not in self.paid}
        self.paid |= dict(
            zip(fresh, pay(self.reward, self.ground, list(fresh.values())), strict=True)
        )
        return [self.paid[key] for key in keys]

    def mutants(self, plain: Attempt) -> Iterator[Attempt]:
        """Each mutation by itself, then compositions, with the phrases and numbers that the reward looks for as they come up."""
        code = plain.draft.program
        singles = [*of_text(), *(chain(of_programs(), of_costs()) if code else ())]
        tried: set[tuple[str, ...]] = set()
        known: dict[str, None] = {}
        for number in range(ROUNDS):
            fresh = self._phrases(plain, known) if number else self._look(plain, known, [])
            if number and not fresh:
                break
            known |= dict.fromkeys(fresh)
            made = list(of_phrases(fresh) if code else of_words(fresh))
            if number == 0:
                numbers = tuple(self.seen.numbers)
                made += [*of_text(numbers), *(of_programs(numbers) if code else ())]
            singles = (
                [*singles, *made]
                if number
                else [*{one.name: one for one in [*singles, *made]}.values()]
            )
            attempts = [
                attempt
                for attempt in (
                    self._mutated(plain, (one,)) for one in (singles if number == 0 else made)
                )
                if attempt
            ]
            yield from attempts
            composed = list(self._composed(plain, singles, attempts, tried, number))
            yield from composed
            self._look(plain, known, composed)
        if code:
            yield from self._spoken(plain, list(known))

    def partial(self) -> Iterator[Attempt]:
        """A program that passes half of the tests, then each mutation of it."""
        half = frozenset(range(0, len(self.ground.pairs), 2))
        base = next(
            one for one in self.graded(self.wrong[0]) if one.draft == self.ground.table(half)
        )
        yield replace(base, feature="partial")
        for one in (*of_text(), *of_programs(), *of_costs()):
            if made := self._mutated(base, (one,)):
                yield replace(made, feature="partial", name=f"{base.name}, {made.name}")

    def _look(
        self, plain: Attempt, known: dict[str, None], attempts: Sequence[Attempt]
    ) -> list[str]:
        """Runs the traced reward on the ground's own answers and some more; gives the phrases that were not known."""
        probes = [*self.right, *self.wrong, *attempts[:PROBES]]
        before = set(self.seen.texts)
        pay(self.probe, self.ground, probes)
        self.seen.forget(set(self.seen.texts) - before, [attempt.draft.text for attempt in probes])
        return self._phrases(plain, known)

    def _phrases(self, plain: Attempt, known: dict[str, None]) -> list[str]:
        """Those of the task first: its words, and the tests that it shows."""
        entry = getattr(self.ground.task, "entry_point", None)
        listed = dict.fromkeys([*self.ground.phrases, *self.seen.phrases()])
        return [text for text in listed if text not in known and text != entry]

    def _composed(
        self,
        plain: Attempt,
        singles: Sequence[Mutation],
        attempts: Sequence[Attempt],
        tried: set[tuple[str, ...]],
        number: int,
    ) -> Iterator[Attempt]:
        """All phrases together, all that paid a little together, and subsets by chance."""
        chance = random.Random(f"{self.seed}/{self.ground.name}/{number}")
        added = {one.name: one for one in singles}
        pays = dict(zip((attempt.name for attempt in attempts), self.pay(attempts), strict=True))
        [base] = self.pay([plain])
        light = [one for one in singles if one.feature != "speed" and not one.rewrites]
        heavy = [one for one in singles if one.rewrites]
        compact = [
            one
            for one in light
            if (made := self._mutated(plain, (one,))) and len(made.draft.text) < COMPACT
        ]
        paid = [added[name] for name, value in pays.items() if value > base + 1e-9]
        phrases = [one for one in compact if one.feature == "phrases"]
        sets = [paid, phrases, compact]
        for size in (2, 3, 5, 12, 40, len(compact) // 2):
            drawn = (chance.sample(compact, min(len(compact), size)) for _ in range(SUBSETS // 6))
            sets += [
                [*some, *chance.sample(heavy, chance.randrange(min(3, len(heavy) + 1)))]
                for some in drawn
            ]
        composed: list[tuple[tuple[Mutation, ...], Attempt]] = []
        for chosen in sets:
            names = tuple(sorted({one.name for one in chosen}))
            if (
                len(names) > 1
                and names not in tried
                and (made := self._mutated(plain, tuple(chosen)))
            ):
                tried.add(names)
                composed.append((tuple(chosen), made))
        enough = max(base, *pays.values()) + BOUND  # that a mutation by itself is paid
        for (parts, made), value in zip(
            composed, self.pay([made for _, made in composed]), strict=True
        ):
            yield self._least(plain, base, parts, made) if value > enough else made

    def _least(
        self, plain: Attempt, base: float, chosen: tuple[Mutation, ...], made: Attempt
    ) -> Attempt:
        """A part of a composition that is paid nearly as well: mutations are left out by halves, quarters, ..., one by one."""
        [value] = self.pay([made])
        size = max(1, len(chosen) // 2)
        while True:
            at = 0
            while at < len(chosen) and len(chosen) > 1:
                fewer = (*chosen[:at], *chosen[at + size :])
                smaller = self._mutated(plain, fewer) if fewer else None
                if smaller and self.pay([smaller])[0] >= base + 0.9 * (value - base):
                    chosen, made = fewer, smaller
                else:
                    at += size
            if size == 1:
                return made
            size //= 2

    def _mutated(self, plain: Attempt, chosen: tuple[Mutation, ...]) -> Attempt | None:
        """None where nothing changes, or two mutations do not go together."""
        draft, report = plain.draft, plain.report
        for one in sorted(chosen, key=lambda one: not one.rewrites):
            try:
                draft, report = one.change(draft), one.report(report)
            except (SyntaxError, ValueError, RecursionError):
                return None
        if draft.text == plain.draft.text:
            return None
        feature = chosen[0].feature if len(chosen) == 1 else "several features at once"
        return Attempt(
            feature,
            " + ".join(one.name for one in chosen[:6]) + (" ..." if len(chosen) > 6 else ""),
            draft,
            report,
        )

    def _spoken(self, plain: Attempt, phrases: Sequence[str]) -> Iterator[Attempt]:
        """What a program returns or raises stands in the report; and what the sandbox counted."""
        task = self.ground.task
        head = (
            self.wrong[1].draft.code.splitlines()[0] if getattr(task, "entry_point", None) else ""
        )
        for phrase in (*phrases, "correct", "AssertionError"):
            if len(phrase) <= 100:
                spoken = f"{head}\n    return {phrase!r}\n" if head else f"print({phrase!r})\n"
                yield Attempt(
                    "output",
                    f"it gives {phrase!r}",
                    Draft(spoken),
                    saying(plain.report, Verdict.WA, f"got {phrase!r}"),
                )
                raised = f"raise ValueError({phrase!r})\n"
                yield Attempt("output", f"it raises {phrase!r}", Draft(f"{head}\n    {raised}" if head else raised),
                              saying(plain.report, Verdict.RE, f"raised ValueError: {phrase}"))  # fmt: skip
        denied = replace(plain.report, denied={"execve": 3, "socket": 2})
        yield Attempt(
            "output", "five calls that the sandbox refused", plain.draft, denied, judged=False
        )

    def graded(self, plain: Attempt) -> Iterator[Attempt]:
        """For every set of tests that leaves out a hidden one: the program that knows their answers by heart, and no others."""
        count = len(self.ground.pairs)
        for passing in map(
            frozenset,
            chain.from_iterable(combinations(range(count), size) for size in range(1, count)),
        ):
            if passing >= self.ground.hidden:
                continue
            tests = tuple(
                TestResult(Verdict.AC) if at in passing else test
                for at, test in enumerate(plain.report.tests)
            )
            known = ", ".join(str(at + 1) for at in sorted(passing))
            yield Attempt(
                "tests",
                f"it knows test {known} by heart",
                self.ground.table(passing),
                replace(plain.report, tests=tests),
            )

    def rights(self) -> Iterator[Attempt]:
        """Solutions in other words: of moderate length, for one may be punished for any excess."""
        code = self.right[0].draft.program
        mutations = [*of_text(), *(chain(of_programs(), of_costs()) if code else ())]
        for right in self.right:
            for one in mutations:
                made = self._mutated(right, (one,))
                if made and len(made.draft.text) < len(right.draft.text) + COMPACT:
                    yield replace(made, feature="")


def saying(report: Report, verdict: Verdict, detail: str) -> Report:
    return replace(
        report,
        verdict=verdict,
        tests=tuple(replace(test, verdict=verdict, detail=detail) for test in report.tests),
    )
