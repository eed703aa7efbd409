"""Plots as images inside Markdown text, because Dagster's metadata has no image type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from artifacts.charts import BLUE, GREY, ORANGE, image
from evaluation.promotion.rate import Rate
from evaluation.reports.plots import Bar, score_bars
from evaluation.scorecard import Scorecard
from problems.dataset.charts import histogram
from problems.difficulty.difficulty import PassRateRank
from verl_jobs.job import VALIDATION

REWARD = "critic/score/mean"


def training_picture(history: Sequence[dict[str, Any]]) -> str:
    """Plot the mean reward per step and validation pass@1 at each checkpoint, so small that Dagster
    shows it without a click. The report has the whole chart.
    """
    curves = {
        name: _thinned([(int(row["step"]), float(row[key])) for row in history if key in row])
        for name, key in (("reward", REWARD), ("validation", VALIDATION))
    }
    if not curves["reward"]:
        return "no step is done yet"
    return image("reward and validation", _small_chart(curves))


def _small_chart(curves: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    """Return an SVG of two curves with their last values, without what `artifacts.charts` adds."""
    steps, heights = zip(*(point for curve in curves.values() for point in curve), strict=True)
    first, last, low, high = min(steps), max(steps), min(heights), max(heights)
    parts, below = [], -13
    for (name, curve), colour in zip(curves.items(), (BLUE, ORANGE), strict=True):
        if not curve:
            continue
        places = [
            (
                round(320 * (x - first) / (last - first or 1)),
                round(5 + 90 * (high - y) / (high - low or 1)),
            )
            for x, y in curve
        ]
        path = "L".join(f"{x} {y}" for x, y in places)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}"/>')
        label = places[-1][1] + 4
        if abs(label - below) < 13:  # two labels never overlap
            label = below + 13 if label > below else below - 13
        below = label
        parts.append(f'<text x="325" y="{below}" fill="{colour}">{name} {curve[-1][1]:.2f}</text>')
    parts += [f'<text y="112">step {first}</text>', f'<text x="285" y="112">{last}</text>']
    size = 'width="430" height="115" font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} fill="{GREY}">{"".join(parts)}</svg>'


def _thinned(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return at most 19 of the points, the first and the last among them."""
    every = max(1, -(-len(points) // 18))
    return points[:-1:every] + points[-1:]


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
