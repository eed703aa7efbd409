"""The embedded family: small Python functions composed of two to four operations.

They work on texts, words, numbers and tables. A hash assigns each composition (the sequence of
operations) to exactly one part: training, validation or held-out. So the held-out part contains
compositions that training never saw, whatever their wording. Of the longest compositions most are
held out: `problems/sources/heldout.py` orders them for the gates.

Demonstrations imitate a fallible author: of the operations that people often get wrong, a
`slip_rate` share has the typical slip. Solutions are correct.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from problems.schema import Problem, Split
from problems.sources.family_settings import FamilyConfig as FamilyConfig
from problems.sources.operations import OPERATIONS, Kind, Operation
from sandbox.protocol import Limits

# Raise it whenever `generate` returns other problems for the same config: homes then make theirs
# again.
VERSION = 2
ENTRY_POINT = "solve"
LICENCE = "Apache-2.0"
OPENINGS = (
    "Write solve(x), x is {kind}: ",
    "solve(x) gets {kind}. First ",
    "Given {kind} x, solve(x) should ",
    "Write solve(x) for {kind} x: ",
    "solve(x) takes {kind}. First ",
    "From {kind} x, solve(x) should ",
)
OLDER_OPENINGS = OPENINGS[:3]  # those of the first homes
KINDS: dict[Kind, str] = {
    "text": "a text",
    "words": "a list of words",
    "nums": "a list of integers",
    "num": "an integer",
    "table": "a table",
}
LIMITS = Limits(wall_s=2.0, cpu_s=1.0, memory_mb=128, output_kb=64)
WORDS = (
    "sun",
    "tree",
    "a",
    "river",
    "of",
    "cloud",
    "moon",
    "tea",
    "light",
    "or",
    "stone",
    "bird",
    "level",
    "noon",
    "is",
    "wind",
)
VALIDATION_SHARE, HELDOUT_SHARE = 8, 20  # percent of the compositions of a length
LONGEST = 4  # operations
LONGEST_TRAINED_SHARE = 12  # percent of the longest compositions; the gates use the others


def part_of(composition: str) -> str:
    """Return "heldout", "validation" or "training": a pure function of the operations' names."""
    bucket = int.from_bytes(hashlib.sha256(composition.encode()).digest()[:4]) % 100
    if HELDOUT_SHARE <= bucket < HELDOUT_SHARE + VALIDATION_SHARE:
        return "validation"
    longest = composition.count("|") + 1 == LONGEST
    if bucket < (100 - LONGEST_TRAINED_SHARE if longest else HELDOUT_SHARE):
        return "heldout"
    return "training"


def older_part_of(composition: str) -> str:
    """Return the part of a composition in the first homes, which held out a fifth of all."""
    bucket = int.from_bytes(hashlib.sha256(composition.encode()).digest()[:4]) % 100
    return "heldout" if bucket < HELDOUT_SHARE else "training or validation"


def generate(config: FamilyConfig) -> list[Problem]:
    """Generate all parts except the held-out one, each composition at most once.

    `extra` holds the composition and, for demonstrations, the fallible code.
    """
    training = list(
        islice(compositions(config.seed, "training"), config.demonstrations + config.train)
    )
    if len(training) < config.demonstrations + config.train:
        raise ValueError(
            f"family.demonstrations and family.train: there are {len(training)} compositions to "
            f"train on, fewer than {config.demonstrations + config.train}"
        )
    # Short compositions run out first; shuffling gives both parts a share of them.
    random.Random(f"{config.seed}/order").shuffle(training)
    splits: list[tuple[Split, list[tuple[Operation, ...]]]] = [
        ("demonstrations", training[: config.demonstrations]),
        ("train", training[config.demonstrations :]),
    ]
    problems = [
        composed(operations, split, config) for split, part in splits for operations in part
    ]
    return problems + [
        composed(operations, "validation", config)
        for operations in islice(compositions(config.seed, "validation"), config.validation)
    ]


def compositions(
    seed: int, part: str, assign: Callable[[str], str] = part_of
) -> Iterator[tuple[Operation, ...]]:
    """Yield distinct compositions of one part, always the same for the same seed.

    Ends when 100,000 draws in a row give nothing new.
    """
    rng = random.Random(f"{seed}/{part}")
    seen: set[str] = set()
    idle = 0
    while idle < 100_000:
        operations = _compose(rng)
        name = name_of(operations)
        if name in seen or assign(name) != part:
            idle += 1
            continue
        seen.add(name)
        idle = 0
        yield operations


def _compose(rng: random.Random) -> tuple[Operation, ...]:
    kind: Kind = rng.choice(("text", "words", "nums", "nums", "num"))
    picked: list[Operation] = []
    for _ in range(rng.choices((2, 3, LONGEST), (3, 5, 2))[0]):
        picked.append(
            rng.choice(
                [
                    o
                    for o in OPERATIONS
                    if o.takes == kind and (not picked or o.name != picked[-1].name)
                ]
            )
        )
        kind = picked[-1].gives
    return tuple(picked)


def name_of(operations: tuple[Operation, ...]) -> str:
    return "|".join(operation.name for operation in operations)


def composed(
    operations: tuple[Operation, ...],
    split: Split,
    config: FamilyConfig,
    openings: Sequence[str] = OPENINGS,
) -> Problem:
    """Return the problem of a composition; its wording is drawn."""
    name = name_of(operations)
    rng = random.Random(f"{config.seed}/{split}/{name}")
    steps = [rng.choice(operation.wordings) for operation in operations]
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return problem_of(operations, rng.choice(openings), steps, rng, split, digest, config)


def problem_of(
    operations: tuple[Operation, ...],
    opening: str,
    steps: list[str],
    rng: random.Random,
    split: Split,
    id: str,
    config: FamilyConfig,
) -> Problem:
    """Return the problem with this wording; `id` is unique in its split."""
    statement = opening.format(kind=KINDS[operations[0].takes]) + ", then ".join(steps) + "."
    codes = [operation.code for operation in operations]
    slipped = [o.slip if o.slip and rng.random() < config.slip_rate else o.code for o in operations]
    extra: dict[str, Any] = {"composition": name_of(operations), "operations": len(operations)}
    if split == "demonstrations":
        extra["demonstration"] = _program(slipped)
    return Problem(
        problem_id=f"embedded/{split}/{id}",
        source="embedded",
        statement=statement,
        style="call",
        tests=_tests(operations, rng),
        entry_point=ENTRY_POINT,
        solutions=(_program(codes), _program([o.other for o in operations]), _nested(codes)),
        visible_tests=config.visible_tests,
        limits=LIMITS,
        tags=(
            f"operations-{len(operations)}",
            *sorted({operations[0].takes, *(o.gives for o in operations)}),
        ),
        split=split,
        licence=LICENCE,
        extra=extra,
    )


def _program(expressions: list[str]) -> str:
    lines = [f"    x = {expression}" for expression in expressions[:-1]]
    return "\n".join([f"def {ENTRY_POINT}(x):", *lines, f"    return {expressions[-1]}"])


def _nested(expressions: list[str]) -> str:
    """Return an equivalent program of small functions, each applied to the previous result."""
    steps = "\n".join(
        f"step{i} = lambda x: {expression}" for i, expression in enumerate(expressions)
    )
    call = "x"
    for i in range(len(expressions)):
        call = f"step{i}({call})"
    return f"{steps}\n\n\ndef {ENTRY_POINT}(x):\n    return {call}"


def _tests(operations: tuple[Operation, ...], rng: random.Random) -> tuple[dict[str, Any], ...]:
    """Return ten tests: three edge cases and seven random ones.

    The operations' own code computes the expected values.
    """
    tests = []
    for value in _inputs(operations[0].takes, rng):
        result: Any = value
        for operation in operations:
            # The operators come from our own table, never from an external program.
            result = eval(operation.code, {"x": result})
        tests.append({"args": [value], "kwargs": {}, "expected": result})
    return tuple(tests)


def _inputs(kind: Kind, rng: random.Random) -> list[Any]:
    def words(low: int, high: int) -> list[str]:
        picked = rng.choices(WORDS, k=rng.randint(low, high))
        return [*picked, rng.choice(picked)] if picked else picked

    match kind:
        case "nums":
            edges: list[Any] = [[], [3, 5, 3, 5, -3, 0], [rng.randint(-9, 9)]]
            return edges + [
                [rng.randint(-9, 15) for _ in range(rng.randint(4, 8))] for _ in range(7)
            ]
        case "num":
            return [
                0,
                -rng.randint(1, 9),
                -rng.randint(100, 999),
                *(rng.randint(-50, 5000) for _ in range(7)),
            ]
        case "words":
            return [
                [],
                ["tree", "tea", "river", "tree"],
                words(1, 1),
                *(words(3, 6) for _ in range(7)),
            ]
        case "text":
            return [
                "",
                "  Tea  or tea",
                "Level noon",
                *(
                    " ".join(w.capitalize() if rng.random() < 0.3 else w for w in words(3, 5))
                    for _ in range(7)
                ),
            ]
    raise ValueError(f"no problem starts from {kind}")
