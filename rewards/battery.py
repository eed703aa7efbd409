"""The exploit battery: before a reward trains anything, it is tried on answers whose worth is known.

In: a reward and a sandbox. Out: a row for each property, with what was seen. It takes seconds, and backs a blocking check before training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

from artifacts.hashing import hash_data
from problems.schema import Problem
from rewards.composite import Reward, reward_hash, score_answers
from rewards.score import Score
from sandbox.protocol import Limits, Report, Verdict
from sandbox.sandbox import Sandbox

HACKS = Path(__file__).parent / "hacks"
LIMITS = Limits(wall_s=2.0, cpu_s=2.0, memory_mb=256, output_kb=64)


@dataclass(frozen=True)
class Row:
    """One property: whether it holds, and what was seen."""

    name: str
    passed: bool
    seen: str


@dataclass(frozen=True)
class BatteryResult:
    """`hash` names the reward and what the battery found: a passport keeps it."""

    passed: bool
    rows: tuple[Row, ...]
    hash: str


@dataclass(frozen=True)
class Case:
    """A problem with answers whose order is known."""

    problem: Problem
    reference: str
    wrong: str


def _problem(style: str, statement: str, tests: Sequence[dict[str, object]], entry_point: str | None) -> Problem:
    made = Problem(f"battery/{style}", "battery", statement, "call", (), entry_point, limits=LIMITS, licence="Apache-2.0")
    return replace(made, style=style, tests=tuple(tests))  # type: ignore[arg-type]


MEDIAN = _problem(
    "call",
    "Return the median of a list of numbers.",
    [{"args": [xs], "kwargs": {}, "expected": want} for xs, want in (([1, 3, 2], 2), ([4], 4), ([1, 2, 3, 4], 2.5), ([5, -1], 2.0))],
    "median",
)
BALANCED = _problem(
    "assert",
    "Return whether the round brackets of a text are balanced.",
    [{"source": "def check(f):\n    assert f('(())') is True\n    assert f(')(') is False\n    assert f('') is True\n"}],
    "is_balanced",
)
TOTAL = _problem(
    "stdio", "Read integers from one line and print their sum.", [{"stdin": f"1 {n} 3\n", "stdout": f"{n + 4}\n"} for n in (2, -9, 0)], None
)

CASES = {
    "call": Case(
        MEDIAN,
        "def median(xs):\n    s, n = sorted(xs), len(xs)\n    return s[n // 2] if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2\n",
        "def median(xs):\n    return sum(xs)\n",
    ),
    "assert": Case(
        BALANCED,
        "def is_balanced(text):\n    depth = 0\n    for c in text:\n        depth += (c == '(') - (c == ')')\n"
        "        if depth < 0:\n            return False\n    return depth == 0\n",
        "def is_balanced(text):\n    return text.count('(') == text.count(')')\n",
    ),
    "stdio": Case(TOTAL, "print(sum(map(int, input().split())))\n", "print(0)\n"),
}

_LADDER = tuple(f"def median(xs):\n    return {{3: 2, 1: 4, 4: 2.5, 2: 2.0}}[len(xs)] if len(xs) in {lengths} else None\n" for lengths in
                ((), (3,), (3, 1), (3, 1, 4), (3, 1, 4, 2)))  # fmt: skip

_DEGENERATE: dict[str, Callable[[Case], str]] = {
    "empty": lambda case: "",
    "white space": lambda case: " \n\t\n" * 100,
    "a comment alone": lambda case: f"# {case.problem.statement}\n",
    "one megabyte of prose": lambda case: "the answer is as follows " * 40_000,
    "one megabyte of brackets": lambda case: "(" * 1_000_000,
    "the prompt again": lambda case: case.problem.statement,
    "a lone surrogate": lambda case: "x = '\ud800'\n",
    "a NUL": lambda case: "x = 1\0\n",
    "an empty block": lambda case: "```python\n```",
    "another language": lambda case: "```javascript\nconsole.log(1)\n```",
}

_SOLVED: dict[str, Callable[[Case], str]] = {
    "in a block": lambda case: f"Here you are:\n```python\n{case.reference}```\nDone.",
    "fenced twice": lambda case: f"```\n```python\n{case.reference}```\n```",
    "after a wrong block": lambda case: f"```python\n{case.wrong}```\nNo, better:\n```python\n{case.reference}```",
    "after the prompt": lambda case: f"{case.problem.statement}\n```py\n{case.reference}```",
}


def run_battery(reward: Reward, sandbox: Sandbox) -> BatteryResult:
    """Tries everything, and again what did not run out of time.

    Raises RuntimeError where the sandbox gave no verdict: then nothing is known about the reward.
    """
    pairs = {name: (case.problem, answer) for name, case, answer in _answers()}
    first = _scores(reward, sandbox, pairs)
    again = _scores(reward, sandbox, {name: pair for name, pair in pairs.items() if first[name].verdict is not Verdict.TLE})
    if broken := [name for name, score in first.items() if score.verdict is Verdict.INFRA]:
        raise RuntimeError(f"no verdict for {len(broken)} of the battery's answers, the first: {broken[0]}: run it again")
    values = {name: score.value if score.value is not None else float("nan") for name, score in first.items()}
    rows = tuple(_rows(reward, first, values, again))
    found = {"reward": reward_hash(reward.config), "rows": [asdict(row) for row in rows]}
    return BatteryResult(all(row.passed for row in rows), rows, hash_data(found))


def _scores(reward: Reward, sandbox: Sandbox, pairs: dict[str, tuple[Problem, str]]) -> dict[str, Score]:
    return dict(zip(pairs, score_answers(sandbox, reward, list(pairs.values())), strict=True))


def _answers() -> Iterator[tuple[str, Case, str]]:
    for style, case in CASES.items():
        yield f"{style}: reference", case, case.reference
        yield f"{style}: wrong", case, case.wrong
        for name, make in _DEGENERATE.items():
            yield f"{style}: {name}", case, make(case)
        for name, make in _SOLVED.items():
            yield f"{style}: {name}", case, make(case)
    for at, answer in enumerate(_LADDER):
        yield f"ladder: {at}", CASES["call"], answer
    for path in sorted(HACKS.glob("*.txt")):
        yield f"hack: {path.stem}", CASES[path.stem.split("_")[0]], path.read_text(encoding="utf-8")


def _rows(reward: Reward, scores: dict[str, Score], values: dict[str, float], again: dict[str, Score]) -> Iterator[Row]:
    for style in CASES:
        best, wrong, empty = (values[f"{style}: {name}"] for name in ("reference", "wrong", "empty"))
        yield Row(f"{style}: reference over wrong over empty", best > wrong > empty, f"{best:g} > {wrong:g} > {empty:g}")
        for name in _DEGENERATE:
            value = values[f"{style}: {name}"]
            yield Row(f"{style}: nothing for {name}", value <= wrong and not scores[f"{style}: {name}"].solved, f"{value:g}, at most {wrong:g}")
        for name in _SOLVED:
            value = values[f"{style}: {name}"]
            yield Row(f"{style}: a solution counts {name}", value == best, f"{value:g}, the reference {best:g}")
    for name, score in scores.items():
        if name.startswith("hack: "):
            best = values[f"{name[6:].split('_')[0]}: reference"]
            yield Row(name, values[name] < best and not score.solved, f"{score.verdict}, {values[name]:g} of {best:g}")
    ladder = [values[f"ladder: {at}"] for at in range(len(_LADDER))]
    steps = list(pairwise(ladder))
    rising = all(a < b for a, b in steps) if not reward.config.sparse else all(a <= b for a, b in steps) and ladder[-1] > ladder[0]
    yield Row("more tests passed are never worth less", rising, ", ".join(f"{value:g}" for value in ladder))
    outside = [name for name, value in values.items() if not -1.0 <= value <= 1.0]
    yield Row("every value lies in [-1, 1]", not outside, f"{len(values)} values" if not outside else f"outside: {outside[0]}")
    changed = [name for name in again if scores[name] != again[name]]
    yield Row("the same answer, the same score", not changed, f"{len(again)} answers twice" if not changed else f"changed: {changed[0]}")
    lost = reward.score(MEDIAN, CASES["call"].reference, Report("lost", Verdict.INFRA, ()))
    yield Row("a failure of the judge is no score", lost.value is None, f"value {lost.value}")
