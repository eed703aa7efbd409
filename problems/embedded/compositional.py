"""The embedded family: small Python functions composed of two to four operations.

They work on texts, words, numbers and tables, with loops, conditions and helper functions. Each
function, by what it computes, belongs to exactly one part: training, validation or held-out
(problems/embedded/behaviour.py). So the held-out part contains functions that training never saw,
not only texts.

Demonstrations imitate a fallible author: of the operations that people often get wrong, a
`slip_rate` share has the typical slip. Solutions are correct.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from textwrap import indent
from typing import Any

from artifacts.hashing import hash_text
from problems.embedded.behaviour import Composition, behaviour, part_of, tests_of
from problems.embedded.operations import (
    BY_NAME,
    OPERATIONS,
    Kind,
    Operation,
    is_block,
    statements,
)
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem, Split
from sandbox.protocol import Limits

# Raise it whenever `generate` returns other problems for the same config: homes then make theirs
# again.
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
KINDS: dict[Kind, str] = {
    "text": "a text",
    "words": "a list of words",
    "nums": "a list of integers",
    "num": "an integer",
    "table": "a table",
}
LIMITS = Limits(wall_s=2.0, cpu_s=1.0, memory_mb=128, output_kb=64)
# Of 40 held-out problems: how many start from a kind and have so many operations. Where there are
# few different functions, the share is small.
SHAPES: dict[tuple[Kind, int], int] = {
    ("text", 4): 1,
    ("words", 3): 2,
    ("words", 4): 5,
    ("nums", 3): 8,
    ("nums", 4): 21,
    ("num", 4): 3,
}
# In training there are more short ones, from which a model learns the operations.
TRAINED: dict[tuple[Kind, int], int] = SHAPES | {
    ("text", 3): 2,
    ("words", 2): 4,
    ("words", 3): 8,
    ("nums", 2): 8,
    ("nums", 3): 40,
    ("num", 3): 4,
}


def generate(config: FamilyConfig) -> list[Problem]:
    """Generate all parts except the held-out one, each function at most once.

    `extra` holds the composition and, for demonstrations, the fallible code.
    """
    sizes: dict[Split, int] = {"demonstrations": config.demonstrations, "train": config.train}
    splits = [split for split, size in sizes.items() for _ in range(size)]
    # Short compositions run out first; shuffling gives both splits a share of them.
    random.Random(f"{config.seed}/order").shuffle(splits)
    training = zip(islice(functions(config.seed, "training"), len(splits)), splits, strict=True)
    validation = islice(functions(config.seed, "validation"), config.validation)
    return [problem_of(operations, split, config) for operations, split in training] + [
        problem_of(operations, "validation", config) for operations in validation
    ]


def functions(seed: int, part: str) -> Iterator[Composition]:
    """Yield sound compositions of one part that compute different functions, always the same for
    the same seed.
    """
    rng, seen = random.Random(f"{seed}/{part}"), set[str]()
    shapes, shares = zip(*TRAINED.items(), strict=True)
    while True:
        operations = compose(rng, *rng.choices(shapes, shares)[0])
        if part_of(operations) == part and (key := behaviour(operations)) not in seen:
            seen.add(key)
            if tests_for(operations, seed):
                yield operations


def compose(rng: random.Random, start: Kind, length: int) -> Composition:
    """Draw a composition. No step follows itself, and at most one is longer than an expression."""
    kind, picked = start, list[Operation]()
    for _ in range(length):
        has_long = any(each.is_long for each in picked)
        picked.append(
            rng.choice(
                [
                    each
                    for each in OPERATIONS
                    if each.takes == kind
                    and each not in picked[-1:]
                    and not (has_long and each.is_long)
                ]
            )
        )
        kind = picked[-1].gives
    return tuple(picked)


@lru_cache(4096)
def tests_for(operations: Composition, seed: int) -> list[dict[str, Any]]:
    """Return the tests of a composition in the family of this seed; none if it is not sound."""
    return tests_of(operations, random.Random(f"{seed}/{name_of(operations)}")) or []


def name_of(operations: Composition) -> str:
    return "|".join(operation.name for operation in operations)


def composition_of(problem: Problem) -> Composition:
    """Return the operations of an embedded problem. Raises KeyError for an unknown one."""
    return tuple(BY_NAME[name] for name in problem.extra["composition"].split("|"))


def problem_of(
    operations: Composition,
    split: Split,
    config: FamilyConfig,
    id: str = "",
) -> Problem:
    """Return the problem of a sound composition, with drawn wording. id: unique in its split; by
    default from the composition.
    """
    name = name_of(operations)
    rng = random.Random(f"{config.seed}/{split}/{id}/{name}")
    steps = [rng.choice(operation.wordings) for operation in operations]
    statement = rng.choice(OPENINGS).format(kind=KINDS[operations[0].takes])
    codes = [operation.code for operation in operations]
    slipped = [o.slip if o.slip and rng.random() < config.slip_rate else o.code for o in operations]
    extra: dict[str, Any] = {
        "composition": name,
        "operations": len(operations),
        "cluster": behaviour(operations),
    }
    if split == "demonstrations":
        extra["demonstration"] = _program(operations, slipped)
    return Problem(
        problem_id=f"embedded/{split}/{id or hash_text(name)[:12]}",
        source="embedded",
        statement=f"{statement}{', then '.join(steps)}.",
        style="call",
        tests=tuple(tests_for(operations, config.seed)),
        entry_point=ENTRY_POINT,
        solutions=(
            _program(operations, codes),
            _program(operations, [o.other for o in operations]),
            _nested(operations),
        ),
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


def _helpers(operations: Composition) -> str:
    return "".join(f"{operation.helper}\n\n" for operation in operations if operation.helper)


def _program(operations: Composition, codes: Sequence[str]) -> str:
    """Return a function with a line for each step."""
    *firsts, last = codes
    ending = f"{last}\nreturn x" if is_block(last) else f"return {last}"
    body = "\n".join([*map(statements, firsts), ending])
    return f"{_helpers(operations)}def {ENTRY_POINT}(x):\n{indent(body, '    ')}"


def _nested(operations: Composition) -> str:
    """Return an equivalent program of small functions, each applied to the previous result."""
    steps = "".join(
        f"def step{i}(x):\n{indent(statements(each.code), '    ')}\n    return x\n\n\n"
        for i, each in enumerate(operations)
    )
    call = "x"
    for i in range(len(operations)):
        call = f"step{i}({call})"
    return f"{_helpers(operations)}{steps}def {ENTRY_POINT}(x):\n    return {call}"
