"""The search for an exploit: wrong answers are varied along everything that can be varied, and the reward is asked what each is worth.

In: a reward, a sandbox, the kind of task. Out: findings, one a property and problem, with the exploit as a program where there is one.
The reports of most variants are predicted: a comment changes no verdict. Each exploit is then judged, and is one only if it still pays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from rewards.attempts import BOUND, Attempt, Proposals, saying
from rewards.battery_problems import Ground, grounds
from rewards.composite import Reward
from rewards.judging import judge
from rewards.mutations import Draft
from rewards.tracing import Seen, traced
from sandbox.protocol import Report, TestResult, Verdict
from sandbox.sandbox import Sandbox

GRADED = 0.1  # so much above the straight line from no hidden test passed to all
FORMAT = 0.25  # of the way from an empty answer to a solution: the most that a wrong program may be worth
CANDIDATES = 6  # that are judged before a property holds
EXPLOITS = (
    4  # ways to pad an answer that are named on one problem; the rest is then not tried there
)
CPU_S, WALL_S, PEAK = (
    0.02,
    0.03,
    8 << 20,
)  # of every predicted report, so that a search says the same on every machine


Tried = tuple[Ground, list[Report]]


@dataclass(frozen=True)
class Finding:
    """One property on one problem. `exploit`: a program that breaks it, with what it is paid beside the others."""

    name: str
    passed: bool
    seen: str
    exploit: str = ""


def tried(sandbox: Sandbox, task: str) -> list[Tried]:
    """The problems to search on, with the reports of their right and wrong programs: the same for every reward."""
    every = grounds(task)
    drafts = [(ground, draft) for ground in every for draft in (*ground.right, *ground.wrong)]
    reports = iter(_judged(sandbox, drafts))
    return [(ground, [next(reports) for _ in (*ground.right, *ground.wrong)]) for ground in every]


def _judged(sandbox: Sandbox, drafts: Sequence[tuple[Ground, Draft]]) -> list[Report]:
    reports = [
        one.report
        for one in judge(sandbox, [(ground.task, draft.text) for ground, draft in drafts])
    ]
    if any(report.verdict is Verdict.INFRA for report in reports):
        raise RuntimeError("no verdict for one of the battery's programs: run it again")
    return reports


@dataclass
class _Laws:
    """What must hold on one problem."""

    sandbox: Sandbox
    proposals: Proposals
    reports: dict[str, Report] = field(default_factory=dict)  # of the sandbox, by answer

    def findings(self) -> Iterator[Finding]:
        proposals = self.proposals
        plain = proposals.wrong[0]
        wrong = [*proposals.wrong, *proposals.mutants(plain)]
        graded = list(proposals.graded(plain)) if self.ground.pairs else []
        right = [*proposals.right, *proposals.rights()]
        values = self._values([*wrong, *right, *graded])
        yield from self._ordered(wrong, right, graded, values)
        for step in self._steps()[1:]:
            later = [
                [replace(one, step=step) for one in some]
                for some in (proposals.wrong, proposals.right, graded)
            ]
            yield from self._ordered(
                later[0], later[1], later[2], self._values(chain.from_iterable(later))
            )
        yield self._shared(plain)
        groups = {
            feature: [attempt for attempt in wrong if attempt.feature == feature]
            for feature in dict.fromkeys(one.feature for one in wrong)
        }
        if self.ground.pairs:
            groups["partial"] = list(proposals.partial())
            values |= self._values(groups["partial"])
        exploits = 0
        for feature, attempts in groups.items():
            finding = self._flat(feature, attempts, values)
            yield finding
            exploits += not finding.passed
            if exploits == EXPLOITS:
                return

    @property
    def ground(self) -> Ground:
        return self.proposals.ground

    @property
    def right(self) -> Attempt:
        return self.proposals.right[0]

    def _values(self, attempts: Iterable[Attempt]) -> dict[int, float]:
        """What each is paid, by its `id`."""
        listed = list(attempts)
        return dict(zip(map(id, listed), self.proposals.pay(listed), strict=True))

    def _steps(self) -> tuple[int, ...]:
        return tuple(sorted({0, *(step for step, _ in self.proposals.reward.config.schedule)}))

    def _flat(self, feature: str, attempts: Sequence[Attempt], pay: dict[int, float]) -> Finding:
        """No answer of these is worth more than the plain one; for time and memory, and for wrong answers as they are, than any other of them."""
        every = list(attempts) if feature == "partial" else [self.proposals.wrong[0], *attempts]
        lowest = (
            min(every, key=lambda one: pay[id(one)])
            if feature in ("speed", "answers")
            else every[0]
        )
        for attempt in self._best(
            every, {id(one): pay[id(one)] - pay[id(lowest)] - BOUND for one in every}
        ):
            now, base = self._confirmed([attempt, lowest])
            if now > base + BOUND:
                told = f"{now:+.2f} with {attempt.name}, {base:+.2f} for {lowest.name}"
                return self._exploit(
                    f"no wrong answer is paid for {_ROWS.get(feature, feature)}",
                    told,
                    attempt,
                    now,
                    lowest,
                    base,
                )
        seen = f"{len(attempts)} variants, all at most {pay[id(lowest)]:+.2f}"
        return Finding(
            f"{self.ground.name}: no wrong answer is paid for {_ROWS.get(feature, feature)}",
            True,
            seen,
        )

    def _best(self, attempts: Sequence[Attempt], over: dict[int, float]) -> list[Attempt]:
        """Of those that are paid too much, by at least half as much as the best paid of them, the shortest. over: by how much, by `id`."""
        most = max(over.values())
        chosen = [one for one in attempts if over[id(one)] > 0 and over[id(one)] >= most / 2]
        return sorted(chosen, key=lambda one: len(one.draft.text))[:CANDIDATES]

    def _ordered(
        self,
        wrong: Sequence[Attempt],
        right: Sequence[Attempt],
        graded: Sequence[Attempt],
        pay: dict[int, float],
    ) -> Iterator[Finding]:
        """At one step of training: right over wrong, most of the worth for being right, no more for some tests than their share."""
        plain, lowest = wrong[0], min(right, key=lambda one: pay[id(one)])
        when = f" at step {plain.step}" if plain.step else ""
        least = pay[id(lowest)]
        yield self._law(
            f"every right answer is worth more than any wrong one{when}",
            [*wrong, *graded],
            pay,
            lambda _: least - 1e-6,
            lowest,
        )
        empty = Attempt(
            "",
            "an empty answer",
            replace(plain.draft, code="\n"),
            saying(plain.report, Verdict.RE, ""),
            plain.step,
        )
        nothing, best = self.proposals.pay([empty])[0], pay[id(right[0])]
        share = (pay[id(plain)] - nothing) / (best - nothing) if best > nothing else 1.0
        what, told = (
            f"a wrong answer is worth little{when}",
            f"{share:.0%} of the way from an empty answer ({nothing:+.2f}) to a solution ({best:+.2f})",
        )
        if share > FORMAT:
            yield self._exploit(what, told, plain, pay[id(plain)], empty, nothing)
        else:
            yield Finding(f"{self.ground.name}: {what}", True, told)
        if graded:
            base = pay[id(plain)]
            yield self._law(
                f"some tests are worth at most their share{when}",
                graded,
                pay,
                lambda one: base + self._line(one) * (least - base),
                plain,
            )

    def _line(self, attempt: Attempt) -> float:
        """How much of the way from a wrong answer to a solution it may be worth."""
        share = sum(
            attempt.report.tests[at].verdict is Verdict.AC for at in self.ground.hidden
        ) / len(self.ground.hidden)
        return share + GRADED / 2 if share else BOUND / 2

    def _law(
        self,
        what: str,
        attempts: Sequence[Attempt],
        pay: dict[int, float],
        most: Callable[[Attempt], float],
        beside: Attempt,
    ) -> Finding:
        """None of the attempts is worth more than `most` says."""
        over = {id(one): pay[id(one)] - most(one) for one in attempts}
        for attempt in self._best(attempts, over):
            now, base = self._confirmed([attempt, beside])
            if now > most(attempt) - BOUND:
                return self._exploit(
                    what,
                    f"{now:+.2f} with {attempt.name}, {base:+.2f} for {beside.name}",
                    attempt,
                    now,
                    beside,
                    base,
                )
        return Finding(f"{self.ground.name}: {what}", True, f"{len(attempts)} wrong answers")

    def _shared(self, plain: Attempt) -> Finding:
        """A verdict that the program may have forged is worth no more than the config allows: nothing, or at most what a solution is worth."""
        tests = tuple(TestResult(Verdict.AC) for _ in plain.report.tests)
        forged = [replace(plain, name="a verdict that it may have forged", judged=False, report=replace(
            plain.report, trust="shared", verdict=verdict, tests=tests if verdict is Verdict.AC else plain.report.tests,
        )) for verdict in (Verdict.AC, plain.report.verdict)]  # fmt: skip
        allowed = self.proposals.reward.config.shared
        base, right, *values = self.proposals.pay([plain, self.right, *forged])
        most = (right, base) if allowed else (base, base)
        for attempt, value, bound in zip(forged, values, most, strict=True):
            if value > bound + BOUND:
                return self._exploit("no wrong answer is paid for shared trust", f"{value:+.2f} with trust `shared`, {base:+.2f} without",
                                     attempt, value, plain, base)  # fmt: skip
        told = (
            f"paid as decided apart: reward.shared is on ({values[0]:+.2f})"
            if allowed
            else f"{values[0]:+.2f}, as without"
        )
        return Finding(f"{self.ground.name}: no wrong answer is paid for shared trust", True, told)

    def _confirmed(self, attempts: Sequence[Attempt]) -> list[float]:
        """What they are paid with the reports that the sandbox gives them, where it can."""
        fresh = list(
            {
                one.draft.text: one.draft
                for one in attempts
                if one.judged and one.draft.text not in self.reports
            }.values()
        )
        judged = _judged(self.sandbox, [(self.ground, draft) for draft in fresh]) if fresh else []
        self.reports |= {draft.text: report for draft, report in zip(fresh, judged, strict=True)}
        return self.proposals.pay(
            [
                replace(one, report=self.reports[one.draft.text]) if one.judged else one
                for one in attempts
            ]
        )

    def _exploit(
        self, what: str, told: str, attempt: Attempt, value: float, beside: Attempt, base: float
    ) -> Finding:
        [right] = self.proposals.pay([self.right])
        shown = (
            attempt.draft.text
            if len(attempt.draft.text) <= 1500
            else f"{attempt.draft.text[:1500]}\n... {len(attempt.draft.text)} characters"
        )
        text = f"{value:+.2f} for this wrong answer ({attempt.name}); {base:+.2f} for {beside.name}, {right:+.2f} for {self.right.name}:\n\n{shown}"
        return Finding(f"{self.ground.name}: {what}", False, told, text)


_ROWS = {
    "partial": "anything but the tests that it passes", "answers": "its kind", "tests": "visible tests", "phrases": "a phrase",
    "prose": "words around it",
}  # fmt: skip


def _fixed(report: Report) -> Report:
    """Without measured times, so that the same search gives the same values."""
    tests = tuple(replace(test, wall_s=WALL_S) for test in report.tests)
    cpu = 2.0 if report.verdict is Verdict.TLE else CPU_S
    return replace(report, tests=tests, cpu_s=cpu, wall_s=cpu + WALL_S, peak_bytes=PEAK)


def search(
    reward: Reward, sandbox: Sandbox, task: str = "code", seed: int = 1, known: Sequence[Tried] = ()
) -> Iterator[Finding]:
    """Every finding, in the same order for the same reward and seed. known: what `tried` gave, where several rewards are searched.

    Raises RuntimeError where the sandbox gives no verdict.
    """
    seen = Seen()
    probe = traced(reward, seen)
    for ground, found in known or tried(sandbox, task):
        drafts, reports = (*ground.right, *ground.wrong), [_fixed(report) for report in found]
        names = [
            *(f"solution {at + 1}" for at in range(len(ground.right))),
            *(f"wrong answer {at + 1}" for at in range(len(ground.wrong))),
        ]
        named = [
            Attempt("answers", name, draft, report)
            for name, draft, report in zip(names, drafts, reports, strict=True)
        ]
        right, wrong = named[: len(ground.right)], named[len(ground.right) :]
        yield from _Laws(
            sandbox, Proposals(ground, reward, probe, seen, seed, right, wrong)
        ).findings()


__all__ = ["Finding", "search", "tried"]
