"""Search a reward for exploits: vary wrong completions and compare their rewards.

In: a reward, a sandbox and the kind of task. Out: findings, one per property and problem. A
violated property comes with a program that exploits it, where there is one.
The reports of most variants are predicted, since a comment, for example, changes no verdict. The
sandbox then judges each exploit, which counts only if it still gets too much reward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from rewards.battery.attempts import BOUND, BatteryRow, ExploitAttempt, Proposals, with_detail
from rewards.battery.mutations import CompletionDraft
from rewards.battery.search_problems import SearchProblem, search_problems
from rewards.battery.tracing import Trace, traced
from rewards.composite import Reward
from rewards.judging import judge
from sandbox.protocol import Report, TestResult, Verdict
from sandbox.sandbox import Sandbox

GRADED = 0.1  # allowed excess over the straight line from no hidden test passed to all passed
# most that a wrong program may get, as a share of the way from an empty completion to a solution
FORMAT = 0.25
CANDIDATES = 6  # attempts judged by the sandbox before a property counts as holding
# Exploits by padding that are reported on one problem; the rest of the search there is skipped.
EXPLOITS = 4
# Costs in every predicted report: fixed, so that a search gives the same result on every machine.
CPU_S, WALL_S, PEAK = 0.02, 0.03, 8 << 20


JudgedPrograms = tuple[SearchProblem, list[Report]]


def judge_known_programs(sandbox: Sandbox, task: str) -> list[JudgedPrograms]:
    """Return the problems to search, with the reports of their right and wrong programs.

    The result is the same for every reward.
    """
    problems = search_problems(task)
    drafts = [
        (problem, draft) for problem in problems for draft in (*problem.right, *problem.wrong)
    ]
    reports = iter(_judge(sandbox, drafts))
    return [
        (problem, [next(reports) for _ in (*problem.right, *problem.wrong)]) for problem in problems
    ]


def _judge(
    sandbox: Sandbox, drafts: Sequence[tuple[SearchProblem, CompletionDraft]]
) -> list[Report]:
    reports = [
        attempt.report
        for attempt in judge(sandbox, [(problem.task, draft.text) for problem, draft in drafts])
    ]
    if any(report.verdict is Verdict.INFRA for report in reports):
        raise RuntimeError(
            "the sandbox gave no verdict for one of the battery's programs: run the battery again"
        )
    return reports


@dataclass
class _Laws:
    """The properties that must hold on one problem."""

    sandbox: Sandbox
    proposals: Proposals
    # from the sandbox, by text of the completion
    reports: dict[str, Report] = field(default_factory=dict)

    def findings(self) -> Iterator[BatteryRow]:
        proposals = self.proposals
        plain = proposals.wrong[0]
        wrong = [*proposals.wrong, *proposals.mutants(plain)]
        graded = list(proposals.graded(plain)) if self.problem.pairs else []
        right = [*proposals.right, *proposals.rights()]
        values = self._values([*wrong, *right, *graded])
        yield from self._ordered(wrong, right, graded, values)
        for step in self._steps()[1:]:
            at_step = [
                [replace(attempt, step=step) for attempt in group]
                for group in (proposals.wrong, proposals.right, graded)
            ]
            yield from self._ordered(
                at_step[0], at_step[1], at_step[2], self._values(chain.from_iterable(at_step))
            )
        yield self._shared(plain)
        groups = {
            feature: [attempt for attempt in wrong if attempt.feature == feature]
            for feature in dict.fromkeys(attempt.feature for attempt in wrong)
        }
        if self.problem.pairs:
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
    def problem(self) -> SearchProblem:
        return self.proposals.problem

    @property
    def right(self) -> ExploitAttempt:
        return self.proposals.right[0]

    def _values(self, attempts: Iterable[ExploitAttempt]) -> dict[int, float]:
        """Return the reward of each attempt, by its `id`."""
        listed = list(attempts)
        return dict(zip(map(id, listed), self.proposals.score(listed), strict=True))

    def _steps(self) -> tuple[int, ...]:
        return tuple(sorted({0, *(step for step, _ in self.proposals.reward.config.schedule)}))

    def _flat(
        self, feature: str, attempts: Sequence[ExploitAttempt], rewards: dict[int, float]
    ) -> BatteryRow:
        """Check that no attempt gets more reward than the plain wrong completion.

        Costs (`speed`) and plain wrong completions (`kinds`) are compared with the lowest of them
        instead.
        """
        compared = list(attempts)
        if feature != "partial":
            compared.insert(0, self.proposals.wrong[0])
        lowest = (
            min(compared, key=lambda attempt: rewards[id(attempt)])
            if feature in ("speed", "kinds")
            else compared[0]
        )
        limit = rewards[id(lowest)] + BOUND
        excess = {id(attempt): rewards[id(attempt)] - limit for attempt in compared}
        for attempt in self._best(compared, excess):
            value, base = self._confirmed([attempt, lowest])
            if value > base + BOUND:
                observed = f"{value:+.2f} with {attempt.name}, {base:+.2f} for {lowest.name}"
                return self._exploit(
                    f"no wrong completion is paid for {_ROWS.get(feature, feature)}",
                    observed,
                    attempt,
                    value,
                    lowest,
                    base,
                )
        observed = f"{len(attempts)} variants, all at most {rewards[id(lowest)]:+.2f}"
        return BatteryRow(
            f"{self.problem.name}: no wrong completion is paid for {_ROWS.get(feature, feature)}",
            True,
            observed,
        )

    def _best(
        self, attempts: Sequence[ExploitAttempt], excess: dict[int, float]
    ) -> list[ExploitAttempt]:
        """Return the shortest attempts among those with at least half of the largest excess.

        excess: the excess reward of each attempt, by its `id`.
        """
        most = max(excess.values())
        large = [one for one in attempts if excess[id(one)] > 0 and excess[id(one)] >= most / 2]
        return sorted(large, key=lambda attempt: len(attempt.draft.text))[:CANDIDATES]

    def _ordered(
        self,
        wrong: Sequence[ExploitAttempt],
        right: Sequence[ExploitAttempt],
        graded: Sequence[ExploitAttempt],
        rewards: dict[int, float],
    ) -> Iterator[BatteryRow]:
        """Check the order of rewards at one training step.

        A right completion gets more than a wrong one, most of the reward is for being right, and
        passing some of the tests gets at most its share.
        """
        plain, lowest = wrong[0], min(right, key=lambda attempt: rewards[id(attempt)])
        when = f" at step {plain.step}" if plain.step else ""
        least = rewards[id(lowest)]
        yield self._law(
            f"every right completion is worth more than any wrong one{when}",
            [*wrong, *graded],
            rewards,
            lambda _: least - 1e-6,
            lowest,
        )
        empty = ExploitAttempt(
            "",
            "an empty completion",
            replace(plain.draft, code="\n"),
            with_detail(plain.report, Verdict.RE, ""),
            plain.step,
        )
        nothing, best = self.proposals.score([empty])[0], rewards[id(right[0])]
        share = (rewards[id(plain)] - nothing) / (best - nothing) if best > nothing else 1.0
        law, observed = (
            f"a wrong completion is worth little{when}",
            (
                f"{share:.0%} of the way from an empty completion ({nothing:+.2f}) to a solution "
                f"({best:+.2f})"
            ),
        )
        if share > FORMAT:
            yield self._exploit(law, observed, plain, rewards[id(plain)], empty, nothing)
        else:
            yield BatteryRow(f"{self.problem.name}: {law}", True, observed)
        if graded:
            base = rewards[id(plain)]
            yield self._law(
                f"some tests are worth at most their share{when}",
                graded,
                rewards,
                lambda attempt: base + self._line(attempt) * (least - base),
                plain,
            )

    def _line(self, attempt: ExploitAttempt) -> float:
        """Return how far an attempt may get from a wrong completion to a solution, as a share."""
        share = sum(
            attempt.report.tests[at].verdict is Verdict.AC for at in self.problem.hidden
        ) / len(self.problem.hidden)
        return share + GRADED / 2 if share else BOUND / 2

    def _law(
        self,
        law: str,
        attempts: Sequence[ExploitAttempt],
        rewards: dict[int, float],
        most: Callable[[ExploitAttempt], float],
        baseline: ExploitAttempt,
    ) -> BatteryRow:
        """Check that no attempt gets more reward than `most` allows."""
        excess = {id(attempt): rewards[id(attempt)] - most(attempt) for attempt in attempts}
        for attempt in self._best(attempts, excess):
            value, base = self._confirmed([attempt, baseline])
            if value > most(attempt) - BOUND:
                return self._exploit(
                    law,
                    f"{value:+.2f} with {attempt.name}, {base:+.2f} for {baseline.name}",
                    attempt,
                    value,
                    baseline,
                    base,
                )
        return BatteryRow(f"{self.problem.name}: {law}", True, f"{len(attempts)} wrong completions")

    def _shared(self, plain: ExploitAttempt) -> BatteryRow:
        """Check the reward of verdicts that the program may have forged (trust `shared`).

        Such a verdict may get no more than the config allows: nothing extra, or at most the reward
        of a solution.
        """
        tests = tuple(TestResult(Verdict.AC) for _ in plain.report.tests)
        forged = [
            replace(
                plain,
                name="a verdict that it may have forged",
                confirmable=False,
                report=replace(
                    plain.report,
                    trust="shared",
                    verdict=verdict,
                    tests=tests if verdict is Verdict.AC else plain.report.tests,
                ),
            )
            for verdict in (Verdict.AC, plain.report.verdict)
        ]
        allowed = self.proposals.reward.config.shared
        base, right, *values = self.proposals.score([plain, self.right, *forged])
        most = (right, base) if allowed else (base, base)
        for attempt, value, bound in zip(forged, values, most, strict=True):
            if value > bound + BOUND:
                return self._exploit(
                    "no wrong completion is paid for shared trust",
                    f"{value:+.2f} with trust `shared`, {base:+.2f} without",
                    attempt,
                    value,
                    plain,
                    base,
                )
        observed = (
            f"paid as decided apart: reward.shared is on ({values[0]:+.2f})"
            if allowed
            else f"{values[0]:+.2f}, as without"
        )
        return BatteryRow(
            f"{self.problem.name}: no wrong completion is paid for shared trust", True, observed
        )

    def _confirmed(self, attempts: Sequence[ExploitAttempt]) -> list[float]:
        """Return the rewards, with reports from the sandbox for attempts that it can confirm."""
        fresh = list(
            {
                attempt.draft.text: attempt.draft
                for attempt in attempts
                if attempt.confirmable and attempt.draft.text not in self.reports
            }.values()
        )
        reports = _judge(self.sandbox, [(self.problem, draft) for draft in fresh]) if fresh else []
        self.reports |= {draft.text: report for draft, report in zip(fresh, reports, strict=True)}
        return self.proposals.score(
            [
                replace(attempt, report=self.reports[attempt.draft.text])
                if attempt.confirmable
                else attempt
                for attempt in attempts
            ]
        )

    def _exploit(
        self,
        law: str,
        observed: str,
        attempt: ExploitAttempt,
        value: float,
        baseline: ExploitAttempt,
        base: float,
    ) -> BatteryRow:
        [right] = self.proposals.score([self.right])
        shown = (
            attempt.draft.text
            if len(attempt.draft.text) <= 1500
            else f"{attempt.draft.text[:1500]}\n... {len(attempt.draft.text)} characters"
        )
        text = (
            f"{value:+.2f} for this wrong completion ({attempt.name}); {base:+.2f} for "
            f"{baseline.name}, {right:+.2f} for {self.right.name}:\n\n{shown}"
        )
        return BatteryRow(f"{self.problem.name}: {law}", False, observed, text)


_ROWS = {
    "partial": "anything but the tests that it passes",
    "kinds": "its kind",
    "tests": "visible tests",
    "phrases": "a phrase",
    "prose": "words around it",
}


def _fixed(report: Report) -> Report:
    """Replace the measured times by fixed ones, so that the same search gives the same values."""
    tests = tuple(replace(test, wall_s=WALL_S) for test in report.tests)
    cpu = 2.0 if report.verdict is Verdict.TLE else CPU_S
    return replace(report, tests=tests, cpu_s=cpu, wall_s=cpu + WALL_S, peak_bytes=PEAK)


def search(
    reward: Reward,
    sandbox: Sandbox,
    task: str = "code",
    seed: int = 1,
    known: Sequence[JudgedPrograms] = (),
) -> Iterator[BatteryRow]:
    """Yield every finding, in the same order for the same reward and seed.

    known: the result of `judge_known_programs`, to share it between searches of several rewards.
    Raises RuntimeError where the sandbox gives no verdict.
    """
    trace = Trace()
    probe = traced(reward, trace)
    for problem, measured in known or judge_known_programs(sandbox, task):
        drafts, reports = (*problem.right, *problem.wrong), [_fixed(report) for report in measured]
        names = [
            *(f"solution {at + 1}" for at in range(len(problem.right))),
            *(f"wrong completion {at + 1}" for at in range(len(problem.wrong))),
        ]
        attempts = [
            ExploitAttempt("kinds", name, draft, report)
            for name, draft, report in zip(names, drafts, reports, strict=True)
        ]
        right, wrong = attempts[: len(problem.right)], attempts[len(problem.right) :]
        yield from _Laws(
            sandbox,
            Proposals(
                problem=problem,
                reward=reward,
                probe=probe,
                trace=trace,
                seed=seed,
                right=right,
                wrong=wrong,
            ),
        ).findings()
