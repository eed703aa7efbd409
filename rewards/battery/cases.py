"""Tasks and completions of the exploit battery. The order of their rewards is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from problems.schema import Problem
from rewards.question import Question, RewardTask
from sandbox.protocol import Limits

HACKS = Path(__file__).parent / "hacks"
LIMITS = Limits(wall_s=6.0, cpu_s=2.0, memory_mb=256, output_kb=64)
MEGA = 10_000_000


@dataclass(frozen=True)
class BatteryCase:
    """A task with completions whose order is known. `solved`: other ways to write the reference."""

    task: RewardTask
    reference: str
    wrong: str
    solved: tuple[tuple[str, str], ...] = ()


def _problem(
    style: str, statement: str, tests: Sequence[dict[str, object]], entry_point: str | None
) -> Problem:
    problem = Problem(
        f"battery/{style}",
        "battery",
        statement,
        "call",
        (),
        entry_point,
        limits=LIMITS,
        licence="Apache-2.0",
    )
    return replace(problem, style=style, tests=tuple(tests))  # type: ignore[arg-type]


MEDIAN = _problem(
    "call",
    "Return the median of a list of numbers.",
    [
        {"args": [xs], "kwargs": {}, "expected": expected}
        for xs, expected in (([1, 3, 2], 2), ([4], 4), ([1, 2, 3, 4], 2.5), ([5, -1], 2.0))
    ],
    "median",
)
BALANCED = _problem(
    "assert",
    "Return whether the round brackets of a text are balanced.",
    [
        {
            "source": (
                "def check(f):\n    assert f('(())') is True\n    assert f(')(') is False\n"
                "    assert f('') is True\n"
            )
        }
    ],
    "is_balanced",
)
TOTAL = _problem(
    "stdio",
    "Read integers from one line and print their sum.",
    [{"stdin": f"1 {n} 3\n", "stdout": f"{n + 4}\n"} for n in (2, -9, 0)],
    None,
)

CODE = {
    "call": BatteryCase(
        MEDIAN,
        (
            "def median(xs):\n    s, n = sorted(xs), len(xs)\n"
            "    return s[n // 2] if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2\n"
        ),
        "def median(xs):\n    return sum(xs)\n",
    ),
    "assert": BatteryCase(
        BALANCED,
        "def is_balanced(text):\n    depth = 0\n    for c in text:\n"
        "        depth += (c == '(') - (c == ')')\n        if depth < 0:\n"
        "            return False\n    return depth == 0\n",
        "def is_balanced(text):\n    return text.count('(') == text.count(')')\n",
    ),
    "stdio": BatteryCase(TOTAL, "print(sum(map(int, input().split())))\n", "print(0)\n"),
}

LADDER = tuple(
    (
        "def median(xs):\n"
        f"    return {{3: 2, 1: 4, 4: 2.5, 2: 2.0}}[len(xs)] if len(xs) in {lengths} else None\n"
    )
    for lengths in ((), (3,), (3, 1), (3, 1, 4), (3, 1, 4, 2))
)


MATH = {
    "math": BatteryCase(
        Question(
            "battery/math",
            "Half a cake is shared by three. How much does each get?",
            "math",
            ("\\frac{1}{6}",),
        ),
        "Each gets a third of a half.\n\n\\boxed{\\frac{1}{6}}",
        "\\boxed{\\frac{1}{3}}",
        (
            ("as a plain fraction", "So each gets \\boxed{1/6}."),
            ("after a line", "A third of one half.\nThe answer is 1/6."),
            ("after a wrong one", "\\boxed{\\frac{1}{3}}, no: \\boxed{\\frac{1}{6}}"),
            ("unreduced", "\\boxed{\\frac{2}{12}}"),
        ),
    )
}
QA = {
    "qa": BatteryCase(
        Question(
            "battery/qa", "Which river flows through Vienna?", "qa", ("Danube", "the Danube river")
        ),
        "It rises in the Black Forest.\nAnswer: the Danube",
        "Answer: Rhine",
        (
            ("by itself", "Danube"),
            ("in capitals", "Answer: DANUBE."),
            ("by another name", "#### The Danube River"),
            ("after a wrong one", "Answer: Rhine\nAnswer: Danube"),
        ),
    )
}
CASES = {"code": CODE, "math": MATH, "qa": QA}

HUGE = ("ten megabytes of prose", "ten megabytes of brackets", "one line a million times")
DEGENERATE: dict[str, Callable[[BatteryCase], str]] = {
    "empty": lambda case: "",
    "white space": lambda case: " \n\t\n" * 100,
    "a comment alone": lambda case: f"# {case.task.statement}\n",
    "ten megabytes of prose": lambda case: "the answer is as follows " * (MEGA // 25),
    "ten megabytes of brackets": lambda case: "(" * MEGA,
    "one line a million times": lambda case: "x = 1\n" * 1_000_000,
    "the prompt again": lambda case: case.task.statement,
    "a lone surrogate": lambda case: "x = '\ud800'\n",
    "a NUL": lambda case: "x = 1\0\n",
    "an empty block": lambda case: "```python\n```",
    "an empty box": lambda case: "\\boxed{}",
    "another language": lambda case: "```javascript\nconsole.log(1)\n```",
    "two languages": lambda case: "```javascript\nconsole.log(1)\n```\n```python\n# see above\n```",
    "right-to-left marks": lambda case: "\u202e\u2066" * 50,
}

_FENCED: dict[str, Callable[[BatteryCase], str]] = {
    "in a block": lambda case: f"Here you are:\n```python\n{case.reference}```\nDone.",
    "fenced twice": lambda case: f"```\n```python\n{case.reference}```\n```",
    "after a wrong one": lambda case: (
        f"```python\n{case.wrong}```\nNo, better:\n```python\n{case.reference}```"
    ),
    "after another language": lambda case: (
        f"```javascript\nconsole.log(1)\n```\n```python\n{case.reference}```"
    ),
    "after the prompt": lambda case: f"{case.task.statement}\n```py\n{case.reference}```",
}


def degenerate(task: str, name: str) -> list[str]:
    """Return the names of the degenerate completions to try on a case.

    To save time, the huge ones are tried only on the first case of a task.
    """
    return [kind for kind in DEGENERATE if kind not in HUGE or name == next(iter(CASES[task]))]


def solved(case: BatteryCase) -> dict[str, str]:
    """Return other texts that mean the same as the reference."""
    return (
        {name: make(case) for name, make in _FENCED.items()}
        if isinstance(case.task, Problem)
        else dict(case.solved)
    )


def completions(task: str) -> Iterator[tuple[str, BatteryCase, str]]:
    """Yield every completion for tasks of this kind, with its name and case.

    Names that begin alike belong to the same case.
    """
    for name, case in CASES[task].items():
        yield f"{name}: reference", case, case.reference
        yield f"{name}: wrong", case, case.wrong
        for kind in degenerate(task, name):
            yield f"{name}: {kind}", case, DEGENERATE[kind](case)
        for kind, text in solved(case).items():
            yield f"{name}: {kind}", case, text
    if task == "code":
        for at, completion in enumerate(LADDER):
            yield f"ladder: {at}", CODE["call"], completion
    for path in sorted(HACKS.glob("*.txt")):
        if path.stem.split("_")[0] in CASES[task]:
            yield (
                f"hack: {path.stem}",
                CASES[task][path.stem.split("_")[0]],
                path.read_text(encoding="utf-8"),
            )
