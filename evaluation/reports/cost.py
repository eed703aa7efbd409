"""The cost of completions: tokens and seconds for each solved problem, and money if a price is set.
Nothing is estimated.

In: a scorecard, a price. Out: a `Usage`.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.scorecard import Scorecard


@dataclass(frozen=True)
class Price:
    """Prices in any currency; 0 for an unknown one."""

    million_tokens: float = 0.0  # of completions
    hour: float = 0.0  # of the machine that generated them

    @property
    def known(self) -> bool:
        return self.million_tokens > 0 or self.hour > 0


@dataclass(frozen=True)
class Usage:
    """Tokens and seconds of all completions, failed ones included. `tokens` 0: not counted."""

    solved: int  # tasks with a passing completion
    tokens: float
    seconds: float

    @classmethod
    def of(cls, card: Scorecard) -> Usage:
        return cls(
            len({sample.task_id for sample in card.samples if sample.verdict == "AC"}),
            card.measured.get("tokens", 0.0),
            card.measured.get("generation_s", 0.0),
        )

    def cost(self, price: Price) -> float | None:
        """Return the cost; None without a price, or without the figure that it is for."""
        if (
            not price.known
            or (price.million_tokens and not self.tokens)
            or (price.hour and not self.seconds)
        ):
            return None
        return self.tokens / 1e6 * price.million_tokens + self.seconds / 3600 * price.hour

    def per_solved_problem(self, price: Price) -> str:
        """Return the tokens, seconds and cost of a solved problem, in words."""
        if not self.solved:
            return "none solved"
        parts = [f"{self.tokens / self.solved:,.0f} tokens"] if self.tokens else []
        parts += [f"{two_digits(self.seconds / self.solved)} s"] if self.seconds else []
        cost = self.cost(price)
        return ", ".join(
            [
                *parts,
                *(
                    [f"{two_digits(cost / self.solved)} of the price's currency"]
                    if cost is not None
                    else []
                ),
            ]
        )


def two_digits(number: float) -> str:
    """Return a number with two digits that count: 430 for 432.1, 0.0043 for 0.00432."""
    return f"{float(f'{number:.2g}'):g}"
