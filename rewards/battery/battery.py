"""The exploit battery: test a reward on known completions, and search it for exploits.

It runs before a reward trains anything, takes about a minute, and backs a blocking check before
training.
In: a reward and a sandbox. Out: a row for each property with what was observed, and the program
that exploits it, if any.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

from artifacts.hashing import hash_data
from rewards.battery.attempts import BatteryRow
from rewards.battery.cases import CASES, LADDER, completions, degenerate, solved
from rewards.battery.search import search
from rewards.composite import Reward, reward_hash
from rewards.judging import Judged, judge
from rewards.score import Score
from sandbox.protocol import Report, TestResult, Verdict
from sandbox.sandbox import Sandbox

LENGTHS = tuple(10 * 2**k for k in range(13))  # of statements, in characters: up to 40,960
PADDING = " It is guaranteed that the input is as described."


@dataclass(frozen=True)
class BatteryResult:
    """The outcome of the battery.

    `hash` identifies the reward and what the battery found; a passport records it. `speed` is
    reported only, it does not affect `passed`.
    """

    passed: bool
    rows: tuple[BatteryRow, ...]
    hash: str
    speed: str = ""


def run_battery(
    reward: Reward, sandbox: Sandbox, task: str = "code", seed: int = 1
) -> BatteryResult:
    """Run the battery on tasks of one kind (code, math, qa), then search for exploits.

    The weights of each tag (`reward.by`) are tried alone, as a reward of their own.
    Completions that did not run out of time are judged twice.
    seed: of the search. Raises RuntimeError where the sandbox gave no verdict: then nothing is
    known about the reward.
    """
    rows: list[BatteryRow] = []
    for tag, one in reward.by_tag().items():
        found, speed = _battery(one, sandbox, task, seed)
        rows += [replace(row, name=f"{tag}: {row.name}") if tag else row for row in found]
    hashed = {
        "reward": reward_hash(reward.config),
        "task": task,
        "seed": seed,
        "rows": [asdict(row) for row in rows],
    }
    return BatteryResult(all(row.passed for row in rows), tuple(rows), hash_data(hashed), speed)


def _battery(
    reward: Reward, sandbox: Sandbox, task: str, seed: int
) -> tuple[list[BatteryRow], str]:
    """Return the rows, and the reward's speed."""
    pairs = {name: (case.task, completion) for name, case, completion in completions(task)}
    judged = dict(zip(pairs, judge(sandbox, list(pairs.values())), strict=True))
    if broken := [
        name for name, judgement in judged.items() if judgement.report.verdict is Verdict.INFRA
    ]:
        raise RuntimeError(
            f"the sandbox gave no verdict for {len(broken)} of the battery's completions (first: "
            f"{broken[0]}): run the battery again"
        )
    begun = time.perf_counter()
    scores = _scores(reward, judged)
    milliseconds = 1000 * (time.perf_counter() - begun) / len(scores)
    speed = f"{milliseconds:.2f} ms per completion, without judging"
    search_rows = (
        replace(finding, name=f"search, {finding.name}")
        for finding in search(reward, sandbox, task, seed)
    )
    laws = _laws(reward, sandbox, judged, scores, task)
    return [*_rows(reward, scores, task), *laws, *search_rows], speed


def _scores(reward: Reward, judged: dict[str, Judged]) -> dict[str, Score]:
    return dict(zip(judged, reward.score_all(list(judged.values())), strict=True))


def _rows(reward: Reward, scores: dict[str, Score], task: str) -> Iterator[BatteryRow]:
    """Compare the reward of each completion with the others."""
    values = {
        name: score.value if score.value is not None else float("nan")
        for name, score in scores.items()
    }
    for name, case in CASES[task].items():
        best, wrong, empty = (
            values[f"{name}: {which}"] for which in ("reference", "wrong", "empty")
        )
        yield BatteryRow(
            f"{name}: reference over wrong, empty not above wrong",
            best > wrong >= empty,
            f"{best:g}, {wrong:g}, {empty:g}",
        )
        for kind in degenerate(task, name):
            value = values[f"{name}: {kind}"]
            yield BatteryRow(
                f"{name}: nothing for {kind}",
                value <= wrong and not scores[f"{name}: {kind}"].solved,
                f"{value:g}, at most {wrong:g}",
            )
        for kind in solved(case):
            value = values[f"{name}: {kind}"]
            yield BatteryRow(
                f"{name}: a solution counts {kind}",
                value == best,
                f"{value:g}, the reference {best:g}",
            )
    for name, score in scores.items():
        if name.startswith("hack: "):
            best = values[f"{name[6:].split('_')[0]}: reference"]
            yield BatteryRow(
                name,
                values[name] < best and not score.solved,
                f"{score.verdict}, {values[name]:g} of {best:g}",
            )
    if task == "code":
        ladder = [values[f"ladder: {at}"] for at in range(len(LADDER))]
        rising = all(a <= b for a, b in pairwise(ladder)) and ladder[-1] > ladder[0]
        yield BatteryRow(
            "more tests passed are never worth less",
            rising,
            ", ".join(f"{value:g}" for value in ladder),
        )
    outside = [name for name, value in values.items() if not -1.0 <= value <= 1.0]
    yield BatteryRow(
        "every value lies in [-1, 1]",
        not outside,
        f"{len(values)} values" if not outside else f"outside: {outside[0]}",
    )


def _laws(
    reward: Reward, sandbox: Sandbox, judged: dict[str, Judged], scores: dict[str, Score], task: str
) -> Iterator[BatteryRow]:
    """Check what must hold for any completion.

    Judged or scored again, alone or among others, it gets the same score; without a verdict it gets
    none.
    """
    same = _scores(reward, dict(reversed(judged.items())))
    changed = [name for name in scores if same[name] != scores[name]]
    yield BatteryRow(
        "the same verdict, the same score, in any order",
        not changed,
        f"{len(scores)} completions twice" if not changed else f"changed: {changed[0]}",
    )
    quick = {
        name: (one.task, one.completion)
        for name, one in judged.items()
        if one.report.verdict is not Verdict.TLE
    }
    again = _scores(reward, dict(zip(quick, judge(sandbox, list(quick.values())), strict=True)))
    changed = [
        name
        for name, score in again.items()
        if score.verdict != scores[name].verdict or score.value != scores[name].value
    ]
    yield BatteryRow(
        "the same completion, the same verdict and score",
        not changed,
        f"{len(again)} completions twice" if not changed else f"changed: {changed[0]}",
    )
    yield _statement_law(reward, judged, task)
    any_one = next(iter(judged.values()))
    lost = reward.score(
        any_one.task,
        any_one.completion,
        Report("lost", Verdict.INFRA, (TestResult(Verdict.INFRA),)),
    )
    yield BatteryRow(
        "a failure of the judge is no score", lost.value is None, f"value {lost.value}"
    )


def _statement_law(reward: Reward, judged: dict[str, Judged], task: str) -> BatteryRow:
    """Check that the order of completions holds for short and long statements, by the same
    reports.
    """
    statements = {
        f"{name}, {length} characters": (name, (case.task.statement + PADDING * length)[:length])
        for name, case in CASES[task].items()
        for length in LENGTHS
    }
    variants = {
        f"{statement}: {which}": replace(
            judged[f"{name}: {which}"],
            task=replace(judged[f"{name}: {which}"].task, statement=text),
        )
        for statement, (name, text) in statements.items()
        for which in ("reference", "wrong", "empty")
    }
    values = {
        name: float("nan") if score.value is None else score.value
        for name, score in _scores(reward, variants).items()
    }
    wrong = [
        name
        for name in statements
        if not values[f"{name}: reference"] > values[f"{name}: wrong"] >= values[f"{name}: empty"]
    ]
    return BatteryRow(
        "reference over wrong, and empty not above wrong, whatever the length of the statement",
        not wrong,
        f"{len(statements)} statements" if not wrong else f"not for {wrong[0]}",
    )
