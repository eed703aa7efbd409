"""The settings of augmentation."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from artifacts.section import Section

Kind = Literal["constant", "inverted", "composed"]


class Augmentation(Section):
    """New problems that are derived from verified training problems.

    Composed problems and derived problems are not used as parents.
    """

    kinds: tuple[Kind, ...] = ("constant", "inverted", "composed")
    """Kinds of mutation; empty: no augmentation."""
    variants: PositiveInt = 1
    """Attempts of each kind per problem. An attempt with the same result as an earlier one
    counts as a repeat.
    """
