"""Learn from people's choices between two completions for one task.

In: choices. Out: a value in [-1, 1] for each completion that was ever shown; for others that of the
head (rewards/preference_head.py), if it predicts choices on held-out problems.
Strengths are Bradley and Terry's (1952), fitted per task by the iteration of Hunter 2004
(doi:10.1214/aos/1079120141, section 2). A tie is half a win for each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from artifacts.hashing import hash_text
from rewards.choices import ShownChoice
from rewards.preference_head import fit_head

# Wins and losses that each completion is assumed to have against one of average strength: keeps the
# strength of an undefeated one finite.
PRIOR = 0.5
ROUNDS, CLOSE = 1000, 1e-9


class Preferences:
    """Values of the completions that people chose between, by problem and text.

    `head` predicts those of other completions; None where no choice was decided.
    """

    def __init__(self, choices: Iterable[ShownChoice]) -> None:
        all_choices, by_problem = [*choices], defaultdict[str, list[ShownChoice]](list)
        self.head = fit_head(all_choices)
        for choice in all_choices:
            by_problem[choice.problem_id].append(choice)
        self._values = {
            (name, _key(text)): value
            for name, rows in by_problem.items()
            for text, value in bradley_terry(rows).items()
        }

    def value(self, problem_id: str, completion: str) -> float | None:
        """Return the value of a completion that was shown, else None."""
        return self._values.get((problem_id, _key(completion)))


def bradley_terry(choices: Iterable[ShownChoice]) -> dict[str, float]:
    """Map each completion to 2 p - 1: in (-1, 1), 0 for average strength.

    p is its chance of being chosen over a completion of average strength (the geometric mean).
    """
    wins: dict[str, float] = defaultdict(lambda: PRIOR)
    comparisons: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for choice in choices:
        share = {"left": 1.0, "right": 0.0, "tie": 0.5}[choice.chosen]
        wins[choice.left] += share
        wins[choice.right] += 1.0 - share
        comparisons[choice.left][choice.right] += 1
        comparisons[choice.right][choice.left] += 1
    strength = dict.fromkeys(sorted(comparisons), 1.0)
    for _ in range(ROUNDS):
        updated = {
            text: wins[text]
            / (
                2 * PRIOR / (strength[text] + 1.0)
                + sum(
                    n / (strength[text] + strength[other])
                    for other, n in sorted(comparisons[text].items())
                )
            )
            for text in strength
        }
        change = max(
            (abs(updated[text] - strength[text]) / strength[text] for text in updated), default=0.0
        )
        strength = updated
        if change < CLOSE:
            break
    return {text: (power - 1.0) / (power + 1.0) for text, power in strength.items()}


def _key(completion: str) -> str:
    return hash_text(completion.strip())
