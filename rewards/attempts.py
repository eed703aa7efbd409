"""Attempts of the exploit search: wrong completions and systematic variations of them.

In: a problem with right and wrong completions. Out: attempts, each with its predicted report.
"""

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

# Most reward, of a range of 2, that a wrong completion may get over one that solves no less.
BOUND = 0.01
SUBSETS, PROBES, ROUNDS = 60, 12, 4
COMPACT = 3_000  # characters that a mutation may add and still take part in compositions


@dataclass(frozen=True)
class Attempt:
    """A completion and its predicted report. `judged`: a sandbox run can confirm the report."""

    feature: str
    name: str
    draft: Draft
    report: Report
    step: int = 0
    judged: bool = True


def pay(reward: Reward, ground: Ground, attempts: Sequence[Attempt]) -> list[float]:
    """Return the rewards of the attempts.

    Raises ValueError if the reward gives no value for a completion that has a verdict.
    """
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
    """The attempts on one problem.

    `probe` is the reward, traced into `seen`. `seed` decides which mutations are combined.
    """

    ground: Ground
    reward: Reward
    probe: Reward
    seen: Seen
    seed: int
    right: list[Attempt]
    wrong: list[Attempt]
    paid: dict[tuple[str, int, str], float] = field(default_factory=dict)

    def pay(self, attempts: Sequence[Attempt]) -> list[float]:
        """Return the rewards of the attempts; each completion and report is scored only once."""
        keys = [(one.draft.text, one.step, repr(one.report)) for one in attempts]
        fresh = {key: one for key, one in zip(keys, attempts, strict=True) if key not in self.paid}
        self.paid |= dict(
            zip(fresh, pay(self.reward, self.ground, list(fresh.values())), strict=True)
        )
        return [self.paid[key] for key in keys]

    def mutants(self, plain: Attempt) -> Iterator[Attempt]:
        """Yield each mutation of `plain` on its own, then compositions of several.

        Phrases and numbers that the reward looks for are added as they are discovered.
        """
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
        """Yield a program that passes half of the tests, then each mutation of it."""
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
        """Run the traced reward on known completions and some probes; return the new phrases."""
        probes = [*self.right, *self.wrong, *attempts[:PROBES]]
        before = set(self.seen.texts)
        pay(self.probe, self.ground, probes)
        self.seen.forget(set(self.seen.texts) - before, [attempt.draft.text for attempt in probes])
        return self._phrases(plain, known)

    def _phrases(self, plain: Attempt, known: dict[str, None]) -> list[str]:
        """Return the new phrases. The task's own words and visible tests come first."""
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
        """Compose mutations into larger ones.

        These are all that raised the reward, all phrases, all compact ones, and random subsets.
        """
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
        # a composition must beat every single mutation by more than BOUND
        enough = max(base, *pays.values()) + BOUND
        for (parts, made), value in zip(
            composed, self.pay([made for _, made in composed]), strict=True
        ):
            yield self._least(plain, base, parts, made) if value > enough else made

    def _least(
        self, plain: Attempt, base: float, chosen: tuple[Mutation, ...], made: Attempt
    ) -> Attempt:
        """Shrink a composition to a part that gets nearly the same reward.

        Mutations are left out by halves, quarters, ... and finally one by one.
        """
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
        """Return the mutated attempt; None where nothing changes or two mutations conflict."""
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
        """Yield programs whose output, exception or denied system calls appear in the report."""
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
                yield Attempt(
                    "output",
                    f"it raises {phrase!r}",
                    Draft(f"{head}\n    {raised}" if head else raised),
                    saying(plain.report, Verdict.RE, f"raised ValueError: {phrase}"),
                )
        denied = replace(plain.report, denied={"execve": 3, "socket": 2})
        yield Attempt(
            "output", "five calls that the sandbox refused", plain.draft, denied, judged=False
        )

    def graded(self, plain: Attempt) -> Iterator[Attempt]:
        """Yield programs that hard-code the outputs of some tests.

        There is one for every set of tests that leaves out a hidden one.
        """
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
        """Yield mutated solutions of moderate length: a reward may penalize excess."""
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
