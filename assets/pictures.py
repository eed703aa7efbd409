"""Plots as images inside Markdown text, because Dagster's metadata has no image type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from artifacts.charts import image
from evaluation.promotion.rate import Rate
from evaluation.reports.plots import Bar, Point, reward_curve, score_bars
from evaluation.scorecard import Scorecard
from evaluation.statistics.hypothesis_tests import wilson
from problems.dataset.charts import histogram
from problems.difficulty.difficulty import PassRateRank
from verl_jobs.job import VALIDATION

REWARD = "critic/score/mean"


def training_picture(history: Sequence[dict[str, Any]], tasks: int) -> str:
    """Plot the mean reward per step, and validation pass@1 at each checkpoint.

    tasks: number of validation problems, for the interval.
    """
    rewards = [
        (int(record["step"]), float(record[REWARD])) for record in history if REWARD in record
    ]
    scored = [
        (int(record["step"]), float(record[VALIDATION]))
        for record in history
        if VALIDATION in record
    ]
    points = [Point(step, share, *wilson(round(share * tasks), tasks)) for step, share in scored]
    return (
        image("reward and validation", reward_curve(rewards, {"validation": points}))
        if rewards
        else "no step is done yet"
    )


def scores_picture(cards: Sequence[tuple[str, Scorecard]]) -> str:
    rates = [(who, card.benchmark, Rate.of(card)) for who, card in cards]
    return image(
        "scores",
        score_bars(
            [
                Bar(f"{name}, {who}", rate.share, rate.low, rate.high, who == "challenger")
                for who, name, rate in rates
            ]
        ),
    )


def difficulty_picture(ranks: Sequence[PassRateRank]) -> str:
    """Plot the number of problems by pass rate and source."""
    rates: dict[str, list[float]] = {}
    for rank in ranks:
        rates.setdefault(rank.problem_id.partition("/")[0], []).append(rank.pass_rate)
    return image(
        "pass rates",
        histogram(rates, "pass rate of the model that training starts from", buckets=10),
    )


def loss_table(losses: Sequence[float]) -> str:
    """Return a table of the warm-up's loss: ten points, each the mean of a tenth of the steps."""
    tenth = max(1, len(losses) // 10)
    return " → ".join(
        f"{sum(losses[i : i + tenth]) / len(losses[i : i + tenth]):.2f}"
        for i in range(0, len(losses), tenth)
    )
