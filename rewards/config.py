"""Configuration of the reward. The defaults are the embedded profile's: correctness and format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import (
    Field,
    NonNegativeInt,
    create_model,
    field_validator,
    model_validator,
)

from artifacts.section import Section
from problems.columns import ProblemError
from problems.schema import Problem
from rewards.components.registry import COMPONENTS
from sandbox.reading import near

MAX_TAGS = 20  # that a message lists
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Weight = Annotated[float, Field(ge=0.0, le=1000.0)]


if TYPE_CHECKING:  # a type checker cannot know which components the registry finds
    Name = str

    class Weights(Section):
        def __init__(self, **weights: float) -> None: ...
        def __getattr__(self, name: str) -> float: ...

else:
    Name = Literal[tuple(COMPONENTS)]
    Weights = create_model(
        "Weights",
        __base__=Section,
        __doc__="Weight of each component. The weights are divided by their sum.",
        __module__=__name__,
        **{
            name: (Weight, Field(component.weight, description=component.about))
            for name, component in COMPONENTS.items()
        },
    )


class RewardConfig(Section):
    """How completions are rewarded."""

    kind: Literal["tests", "random"] = "tests"
    """`random` gives 1 or -1 by a hash of problem and completion, whatever the tests say. It is the
    control experiment: its model must not be promoted.
    """
    file: str = ""
    """Python file with a reward of your own (`ratchet reward new` writes one). It decides alone; of
    the rest of this section only `shared` is read.
    """
    weights: Weights = Weights()
    """Weights of the components of `tests`."""
    by: Mapping[str, Mapping[Name, Weight]] = {}
    """Other weights for the problems with a tag, such as `{mbpp: {style: 0.3}}`; what a tag does
    not name stays as in `weights`. If a problem has several of the tags, the first one here counts.
    """
    sparse: bool = True
    """Reward correctness only where every test passes; otherwise by the share of hidden tests that
    pass.
    """
    schedule: tuple[tuple[NonNegativeInt, Share], ...] = ()
    """Pairs of training step and share of dense correctness, instead of `sparse`: from binary to
    dense and back, with straight lines between the steps.
    """
    combine: Literal["sum", "lexicographic", "constraint"] = "sum"
    """`sum` adds the weighted components. `lexicographic` lets a component count only between
    completions that are equal in all heavier ones. `constraint` adds `floors`.
    """
    floors: Mapping[Name, Annotated[float, Field(ge=-1.0, le=1.0)]] = {}
    """For `constraint`: a completion with a component below its floor gets less than any that keeps
    all floors.
    """
    security: bool = False
    """A hard constraint: an attempt that the sandbox saw (another program, a socket, a file
    outside, a refused call) makes the reward of any completion -1.
    """
    shared: bool = False
    """Reward verdicts with trust `shared`, such as those of unittests: a program may forge them.
    Off: such a verdict counts as if no test had passed.
    """
    preferences: str = ""
    """JSON lines or parquet file with choices between two completions, for `weights.preference`."""
    unverified: bool = False
    """Train although the exploit battery did not pass (`--unverified`). Everything made with it is
    marked.
    """

    @model_validator(mode="after")
    def something_counts(self) -> RewardConfig:
        for tag, weights in self.weightings.items():
            if weights.correctness == 0.0:
                raise ValueError(
                    f"{f'by.{tag}' if tag else 'weights'}.correctness is 0: a reward that ignores "
                    "the tests teaches none of them; give it a weight above 0"
                )
        return self

    @model_validator(mode="after")
    def parts_fit(self) -> RewardConfig:
        if self.file and self.kind == "random":
            raise ValueError("file and kind: random exclude each other: leave one out")
        if any(a >= b for (a, _), (b, _) in pairwise(self.schedule)):
            raise ValueError("schedule: the steps must rise, e.g. [[0, 0.0], [10, 1.0], [40, 0.0]]")
        if bool(self.floors) != (self.combine == "constraint"):
            raise ValueError("floors and combine: constraint belong together: give both or none")
        if bool(self.preferences) != any(each.preference for each in self.weightings.values()):
            raise ValueError(
                "preferences and weights.preference belong together: give both or none"
            )
        return self

    @field_validator("file", "preferences")
    @classmethod
    def absolute(cls, path: str) -> str:
        """Make paths absolute: Ray's workers have a working directory of their own."""
        return str(Path(path).expanduser().absolute()) if path else path

    @property
    def measured(self) -> tuple[str, ...]:
        """The components that this reward measures: those with a weight, and those for the record.

        A reward file and `random` measure none.
        """
        if self.file or self.kind == "random":
            return ()
        weightings = self.weightings.values()
        return tuple(
            name
            for name, each in COMPONENTS.items()
            if each.always or any(getattr(weights, name) for weights in weightings)
        )

    @property
    def timed(self) -> tuple[str, ...]:
        """The components of measured time that this reward uses.

        With any of them, no determinism can be claimed.
        """
        return tuple(name for name in self.measured if COMPONENTS[name].timed)

    @property
    def linted(self) -> bool:
        """Whether this reward reads the linter's findings."""
        return self.security or any(COMPONENTS[name].linted for name in self.measured)

    @property
    def weightings(self) -> dict[str, Weights]:
        """The weights by tag, those of all other problems under "".

        A problem has the first of these whose tag it has.
        """
        changed = {tag: self.weights.model_copy(update=dict(each)) for tag, each in self.by.items()}
        return changed | {"": self.weights}

    def domain(self, tags: Collection[str]) -> str:
        """Return the tag of `by` that decides for a problem with these tags; "" where none does."""
        return next((tag for tag in self.by if tag in tags), "")

    def weights_of(self, problem: Problem) -> Weights:
        """Return the weights that count for a problem."""
        return self.weightings[self.domain(problem.tags)]

    def check_tags(
        self, problems: Iterable[Problem], later: Iterable[str] = (), *, trains: bool = True
    ) -> None:
        """Raise ProblemError for a tag of `by` that no problem has: of those for training, if it
        trains.

        later: tags of problems that are still to be made.
        """
        used = [p for p in problems if not trains or (p.split == "train" and not p.gated)]
        tags = Counter(tag for each in used for tag in each.tags)
        known = [*(tag for tag, _ in tags.most_common()), *later]
        for tag in self.by:
            if tag not in known:
                raise ProblemError(
                    f"no {'training ' * trains}problem has the tag {tag!r}{near(tag, known)}",
                    f"the tags are {', '.join(known[:MAX_TAGS]) or 'none'}",
                    "reward.by",
                )

    def dense_share(self, step: int) -> float:
        """Return how much of correctness is dense at this training step.

        Binary correctness is 0, the share of hidden tests is 1.
        """
        if not self.schedule:
            return 0.0 if self.sparse else 1.0
        if step <= self.schedule[0][0]:
            return self.schedule[0][1]
        for (a, low), (b, high) in pairwise(self.schedule):
            if step <= b:
                return low + (high - low) * (step - a) / (b - a)
        return self.schedule[-1][1]


QUALITY = RewardConfig(
    weights=Weights(correctness=0.7, format=0.0, style=0.2, efficiency=0.1), security=True
)
"""The reward of the GPU profiles."""
