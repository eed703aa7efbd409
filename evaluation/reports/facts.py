"""The facts of a report as typed data; `summary.json` holds the same."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from artifacts.section import Section
from evaluation.promotion.comparison import signed
from evaluation.promotion.gate import Decision
from evaluation.promotion.method_names import name_of_interval, name_of_rate_interval, name_of_test
from evaluation.promotion.rate import Rate, points


class Fact(Section):
    """One part of a report."""


class Model(Fact):
    """The model, its origin and its training."""

    architecture: str
    """Such as "Qwen2, made from scratch" or a hub id."""
    parameters: int
    warm_up: str
    """One or two sentences: what the model was taught before reinforcement learning, including
    mistakes of the demonstrations.
    """
    training: str
    """One or two sentences: what reinforcement learning did with it."""
    settings: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """The most important settings: algorithm, steps, learning rate, group size."""


class FunnelStep(Fact):
    """One stage of the data's funnel."""

    stage: str
    problems: int
    content_hash: str
    removed: dict[str, int] = Field(default_factory=dict)
    """Reason -> number of problems that the stage removed."""


class ScoreFact(Fact):
    """pass@1 at a training step."""

    step: int
    benchmark: str
    rate: Rate


class Curve(Fact):
    rewards: tuple[tuple[int, float], ...]
    """(training step, mean reward)."""
    scores: tuple[ScoreFact, ...] = ()
    figures: dict[str, tuple[tuple[int, float], ...]] = Field(default_factory=dict)
    """Other figures of each step, such as KL: name -> (training step, value)."""


class Group(Fact):
    """Tasks with a tag in common."""

    label: str
    before: Rate
    after: Rate


class Example(Fact):
    """One task with both programs, side by side."""

    outcome: Literal["won", "lost", "unsolved"]
    task_id: str
    prompt: str
    before: str
    after: str
    before_verdict: str
    after_verdict: str
    first_failed: str = ""
    """The first test that the later program fails, if the statement shows that test; hidden tests
    stay hidden.
    """


class BenchmarkScore(Fact):
    name: str
    version: str
    conventions: str
    champion: Rate | None
    challenger: Rate | None
    left_out: int | None = None
    """Tasks that resemble training data; None if no contamination report covers the benchmark."""
    champion_clean: Rate | None = None
    """The champion's score without those tasks; None if none is left."""
    challenger_clean: Rate | None = None
    note: str = ""
    """A reason for the score, such as that a model with score 0 is far too small."""


class Unmeasured(Fact):
    name: str
    reason: str


class Link(Fact):
    """One artifact of the pipeline run, with its inputs."""

    name: str
    kind: str
    content_hash: str
    made_from: tuple[str, ...] = ()
    details: str = ""
    """A few words or figures."""


class Environment(Fact):
    code_version: str
    packages: dict[str, str]
    hardware: dict[str, Any]
    isolation: str
    seeds: dict[str, int]


class Minutes(Fact):
    stage: str
    minutes: float
    note: str = ""


class Effort(Fact):
    """Seconds and tokens of one part of the work. None: not measured."""

    what: str
    seconds: float | None = None
    tokens: float | None = None
    note: str = ""


class ReportFacts(Fact):
    """The results of one pipeline run, from raw problems to a decision."""

    run_id: str
    profile: str
    created_at: str
    model: Model
    decision: Decision
    version: int | None = None
    """The challenger's version in the ledger."""
    before_name: str = "champion"
    """The meaning of "before" in groups and examples: the champion, or the model that training
    started from.
    """
    funnel: tuple[FunnelStep, ...] = ()
    curve: Curve | None = None
    pass_rates: tuple[float, ...] = ()
    """Pass rates of the ranked training problems, by the model that training started from."""
    groups: tuple[Group, ...] = ()
    examples: tuple[Example, ...] = ()
    benchmarks: tuple[BenchmarkScore, ...] = ()
    not_measured: tuple[Unmeasured, ...] = ()
    provenance: tuple[Link, ...] = ()
    environment: Environment
    stages: tuple[Minutes, ...] = ()
    minutes: float = 0.0
    """Of the whole run until this report, with the starts of its processes."""
    effort: tuple[Effort, ...] = ()
    price: str = ""
    """The cost in money, or why it is unknown."""
    peak_memory_gib: float | None = None
    links: dict[str, str] = Field(default_factory=dict)
    """Title -> address or path of related pages: the W&B run, the MLflow run."""

    @property
    def headline(self) -> str:
        """Return the result in one sentence."""
        score, name = self.decision.score, self.decision.challenger.name
        compared, tasks = self.decision.comparison, self._tasks(self.decision.score.tasks)
        if compared is None:
            return f"First champion: {name} solves {points(score.share)} % of {tasks}{self._at_k}"
        verdict = "Promoted" if self.decision.promoted else "Not promoted"
        before = points(compared.before.share)
        return f"{verdict}: {before} % → {points(score.share)} % of {tasks}{self._at_k}"

    @property
    def gain(self) -> str:
        """Return the result as a number with its 95 % interval."""
        score, comparison = self.decision.score, self.decision.comparison
        if comparison is None:
            return (
                f"pass@{self.k} {points(score.share)} %, 95 % interval {points(score.low)} to "
                f"{points(score.high)} %"
            )
        between = f"{signed(comparison.difference_low)} to {signed(comparison.difference_high)}"
        return f"{signed(comparison.difference)} points{self._at_k}, 95 % interval {between}"

    @property
    def k(self) -> int:
        """Return the k of the gate's pass@k."""
        return self.decision.comparison.k if self.decision.comparison else self.decision.policy.k

    @property
    def _at_k(self) -> str:
        return "" if self.k == 1 else f" (pass@{self.k})"

    def _tasks(self, count: int) -> str:
        comparison, policy = self.decision.comparison, self.decision.policy
        benchmark = comparison.benchmark if comparison else policy.benchmark
        if benchmark == "heldout":
            return f"{count} problems that training never saw"
        return f"{count} tasks of {benchmark}"

    @property
    def score_note(self) -> str:
        """Return what the score is, in one sentence."""
        score, comparison = self.decision.score, self.decision.comparison
        benchmark = comparison.benchmark if comparison else self.decision.policy.benchmark
        tasks = f"{score.tasks} tasks of {benchmark}"
        if score.solved is not None:
            return f"pass@1: the share of {tasks} whose completion passes every test."
        if self.k == 1:
            return f"pass@1: the share of completions that pass every test, averaged over {tasks}."
        return (
            f"pass@{self.k}: the chance that at least one of {self.k} completions passes every "
            f"test, averaged over {tasks}."
        )

    @property
    def statistics(self) -> str:
        """Return which tests and intervals were used."""
        comparison = self.decision.comparison
        shares = f"Intervals are 95 %: {name_of_rate_interval(self.decision.score.model_dump())}"
        if comparison is None:
            return f"{shares}."
        words = comparison.model_dump()
        return (
            f"{shares}, for shares, {name_of_interval(words)} for the difference; p is one-sided, "
            f"by the {name_of_test(words)}."
        )

    def summary(self) -> dict[str, Any]:
        """Return the facts as plain JSON, the most important ones first."""
        comparison = self.decision.comparison
        lead = {
            "headline": self.headline,
            "gain": self.gain,
            "promoted": self.decision.promoted,
            "verdict": self.decision.kind,
            f"champion_pass_at_{self.k}": comparison.before.share if comparison else None,
            f"challenger_pass_at_{self.k}": self.decision.score.share,
            "p_value": self.decision.p_value,
            "reasons": list(self.decision.reasons),
            "minutes": self.minutes,
        }
        return lead | self.model_dump(mode="json")
