"""The problems on which the exploit battery searches.

Each has visible and hidden tests, right programs, and wrong programs that pass no hidden test.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from artifacts.parsing import parse
from problems.dataset.rl_parquet import COST
from problems.schema import Problem
from rewards.battery.cases import CASES, LIMITS, BatteryCase
from rewards.battery.mutations import CompletionDraft
from rewards.question import RewardTask
from sandbox.styles import STYLES

Pair = tuple[Any, Any]


@dataclass(frozen=True)
class SearchProblem:
    """A task to search on.

    `wrong`: the plain one first; a sound reward gives all of them the same. `pairs`: input and
    output of each test.
    """

    name: str
    task: RewardTask
    right: tuple[CompletionDraft, ...]
    wrong: tuple[CompletionDraft, ...]
    pairs: tuple[Pair, ...] = ()

    @property
    def hidden(self) -> frozenset[int]:
        """Positions of the tests that a completion cannot read; all, if it can read every one."""
        shown = self.task.visible_tests if isinstance(self.task, Problem) else 0
        every = range(len(self.pairs) or 1)
        return frozenset(every[shown:] or every)

    @property
    def phrases(self) -> list[str]:
        """Texts that a completion may take from its prompt.

        These are the statement, its longer words, and the visible tests, also as asserts.
        """
        shown = self.pairs[: self.task.visible_tests] if isinstance(self.task, Problem) else ()
        entry = self.task.entry_point if isinstance(self.task, Problem) else None
        calls = [
            f"assert {entry}({', '.join(map(repr, arguments))}) == {expected!r}"
            for arguments, expected in shown
            if entry
        ]
        words = [word for word in re.findall(r"\w+", self.task.statement) if len(word) > 4]
        return [
            self.task.statement,
            *calls,
            *(str(part).strip() for pair in shown for part in pair),
            *words,
        ]

    def table(self, passing: frozenset[int]) -> CompletionDraft:
        """Return a program that hard-codes the outputs of these tests and knows nothing else."""
        known = [pair for at, pair in enumerate(self.pairs) if at in passing]
        if not isinstance(self.task, Problem) or self.task.entry_point is None:
            return CompletionDraft(
                f"import sys\nKNOWN = {dict(known)!r}\nprint(KNOWN.get(sys.stdin.read(), '?'))\n"
            )
        lines = "".join(
            f"    if list(args) == {list(arguments)!r}:\n        return {expected!r}\n"
            for arguments, expected in known
        )
        return CompletionDraft(f"def {self.task.entry_point}(*args):\n{lines}    return None\n")


def _ground(
    name: str,
    style: str,
    statement: str,
    *,
    entry: str | None,
    visible: int,
    pairs: Sequence[Pair],
    right: Sequence[str],
    wrong: str,
    extra: dict[str, Any] | None = None,
) -> SearchProblem:
    tests = tuple(_test(style, arguments, expected) for arguments, expected in pairs)
    task = Problem(
        problem_id=f"battery/{name}",
        source="battery",
        statement=statement,
        style=style,
        tests=tests,
        entry_point=entry,
        starter_code="",
        solutions=tuple(right),
        visible_tests=visible,
        limits=LIMITS,
        licence="Apache-2.0",
    )
    task = replace(task, extra=extra or {})
    return SearchProblem(
        name,
        task,
        tuple(map(CompletionDraft, right)),
        (
            CompletionDraft(wrong),
            *(CompletionDraft(source) for source in typical_wrong(right[0], entry)),
        ),
        tuple(pairs),
    )


def _test(style: str, arguments: Any, expected: Any) -> dict[str, Any]:
    kind = STYLES[style]
    test = (
        kind.expecting({"args": list(arguments), "kwargs": {}}, expected)
        if kind.has_entry_point
        else kind.expecting({"stdin": arguments}, f"{expected}\n")
    )
    assert test is not None
    return test


def typical_wrong(reference: str, entry: str | None) -> tuple[str, ...]:
    """Return wrong programs as a model writes them.

    A short one, a long one with explanations, a lambda, one that raises, and for functions one that
    never ends.
    """
    if entry is None:
        explained = (
            "import sys\n\n# Read the text first, and work on it then.\ntext = sys.stdin.read()\n"
            "result = []\n"
        )
        explained += (
            "for word in text.split():\n    # Nothing is known about this word.\n"
            "    result.append(None)\nprint('?', len(result) + 1000)\n"
        )
        return "print('?')\n", explained, "raise ValueError('no idea')\n"
    arguments = ast.unparse(
        next(node for node in parse(reference).body if isinstance(node, ast.FunctionDef)).args
    )
    head = f"def {entry}({arguments}):\n"
    explained = head + (
        '    """Work the result out step by step.\n\n'
        '    Nothing is returned where nothing is known.\n    """\n    result = None\n'
    )
    explained += (
        "    for attempt in range(3):\n        # Look at it once more.\n        if attempt > 5:\n"
        "            result = attempt\n    return result\n"
    )
    short = f"{entry} = lambda *given: None\n"
    bodies = (
        "    return None\n",
        "    raise ValueError('no idea')\n",
        "    while True:\n        pass\n",
    )
    return head + bodies[0], explained, short, head + bodies[1], head + bodies[2]


SECOND = _ground(
    "second",
    "call",
    "Return the second largest of the different numbers in a list; 0 where there is none.",
    entry="second_largest",
    visible=2,
    pairs=[
        (([3, 1, 2],), 2),
        (([7, 7],), 0),
        (([10, 20, 20, 5],), 10),
        (([-1, -5, -3],), -3),
        (([4, 9, 9, 8, 1],), 8),
        (([100, 50],), 50),
    ],
    right=(
        (
            "def second_largest(numbers):\n    ordered = sorted(set(numbers))\n"
            "    return ordered[-2] if len(ordered) > 1 else 0\n"
        ),
        "def second_largest(numbers):\n    best, second = None, None\n    for x in numbers:\n"
        "        if best is None or x > best:\n            best, second = x, best\n"
        "        elif x != best and (second is None or x > second):\n            second = x\n"
        "    return 0 if second is None else second\n",
    ),
    wrong="def second_largest(numbers):\n    return sorted(numbers)[-1] + 1\n",
    extra={COST: {"cpu_s": [0.05, 0.06, 0.07], "peak_bytes": [2e7, 2.1e7, 2.2e7]}},
)
VOWELS = _ground(
    "vowels",
    "stdio",
    "Read one line and print how many of its words begin with a vowel.",
    entry=None,
    visible=1,
    pairs=[
        ("an old tree\n", 2),
        ("one\n", 1),
        ("is it over under us\n", 5),
        ("every apple is red and sweet\n", 4),
    ],
    right=("print(sum(word[0] in 'aeiouAEIOU' for word in input().split()))\n",),
    wrong="print(-len(input().split()))\n",
)
BLANKS = _ground(
    "blanks",
    "assert",
    "Return a text with every run of blanks as a single one.",
    entry="single_blanks",
    visible=1,
    pairs=[
        (("a  b",), "a b"),
        (("   ",), " "),
        (("x   y  z",), "x y z"),
        ((" a    b ",), " a b "),
        (("q    w e",), "q w e"),
    ],
    right=("import re\n\n\ndef single_blanks(text):\n    return re.sub(' +', ' ', text)\n",),
    wrong="def single_blanks(text):\n    return text.replace(' ', '')\n",
)


def search_problems(task: str) -> tuple[SearchProblem, ...]:
    """Return the problems of this kind: code, math or qa."""
    return (
        (SECOND, VOWELS, BLANKS)
        if task == "code"
        else tuple(_of_question(name, case) for name, case in CASES[task].items())
    )


def _of_question(name: str, case: BatteryCase) -> SearchProblem:
    return SearchProblem(
        name,
        case.task,
        (CompletionDraft(case.reference, program=False),),
        (CompletionDraft(case.wrong, program=False),),
    )
