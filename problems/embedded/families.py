"""Families of embedded problems, for experiments on adaptation to something new.

A family is a few operations that a model may or may not have seen. A problem belongs to a family if
its composition uses one of the family's operations and none of another family's. Its part
(training, held-out) follows from what it computes, as for all embedded problems, so examples and
held-out problems of a family share no function. A start policy that must not know any family
learns from `common`, whose problems use no family's operation.
"""

from __future__ import annotations

from itertools import islice

from problems.embedded.compositional import functions, name_of, problem_of
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem, Split

FAMILIES: dict[str, frozenset[str]] = {
    "digits": frozenset({"digits", "digit_sum"}),
    "parity": frozenset({"even", "odd"}),
    "slices": frozenset({"first", "skip", "last"}),
    "tables": frozenset({"letters", "tally", "histogram", "keys", "values", "repeated", "top"}),
}
LOOKED_AT = 6_000  # number of functions searched per part
COMMON = ""  # no family's operation


def family_of(composition: str) -> str | None:
    """Return the family's name, COMMON for no family, None for several families."""
    used = set(composition.split("|"))
    families = [name for name, operations in FAMILIES.items() if used & operations]
    return None if len(families) > 1 else families[0] if families else COMMON


def examples(config: FamilyConfig, family: str, count: int) -> list[Problem]:
    """Return the first `count` training problems of the family.

    A smaller count gives a prefix of a larger one. Raises ValueError if there are fewer.
    """
    return _draw(config, family, "training", "train", count)


def heldout(config: FamilyConfig, family: str, count: int) -> list[Problem]:
    """Return the first `count` held-out problems of the family.

    Raises ValueError if there are fewer.
    """
    return _draw(config, family, "heldout", "heldout", count)


def common(config: FamilyConfig, count: int) -> list[Problem]:
    """Return training problems that use no family's operation, with demonstrations."""
    return _draw(config, COMMON, "training", "demonstrations", count)


def _draw(config: FamilyConfig, family: str, part: str, split: Split, count: int) -> list[Problem]:
    ours = (
        operations
        for operations in islice(functions(config.seed, part), LOOKED_AT)
        if family_of(name_of(operations)) == family
    )
    problems = [problem_of(operations, split, config) for operations in islice(ours, count)]
    if len(problems) < count:
        raise ValueError(
            f"family {family or 'common'!r} has {len(problems)} functions in its {part} "
            f"part, fewer than the {count} requested"
        )
    return problems
