"""Whether the statistics of comparing and promoting keep their word, by simulation: errors, power,
coverage. Prints tables.

`python -m measurements.promotions [pairs] [histories]`: 2,000 null pairs and 200 histories of 50
gates. A task has a difficulty that both models share; a model's answers are drawn from its chance
on each task. Beside it: measurements/gate_error.py, the gate's one test on 400 tasks.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from evaluation.promotion.gate import Gate, Policy, decide
from evaluation.scorecard import Sample, Scorecard
from evaluation.statistics.alpha_spending import Spending, next_level
from evaluation.statistics.hypothesis_tests import Floats, mcnemar, power, share_interval, wilson
from evaluation.statistics.paired import (
    announced_share_gain,
    bootstrap_test,
    difference_interval,
    mean_power,
    not_worse,
)
from evaluation.statistics.pass_at_k import curve, estimates
from evaluation.statistics.seeds import compare_recipes

Row = tuple[object, ...]
SETS = {"heldout": 400, "humaneval": 164, "mbpp": 500}
GATES, BETTER, GAIN = (
    50,
    0.2,
    0.1,
)  # of a history: its length, the share of challengers that are better, by how much


def card(name: str, benchmark: str, solved: NDArray[np.bool_]) -> Scorecard:
    samples = tuple(
        Sample.model_construct(
            task_id=str(i),
            completion="",
            program="",
            verdict="AC" if s else "WA",
            tags=(f"tag-{i % 8}",),
        )
        for i, s in enumerate(solved)
    )
    return Scorecard.model_construct(
        benchmark=benchmark,
        benchmark_version="1",
        harness_version="1",
        checkpoint=name,
        checkpoint_hash=name,
        sampling={},
        isolation="",
        samples=samples,
    )


def task_chances(rng: np.random.Generator, tasks: int, mean: float = 0.45) -> Floats:
    """How likely a model solves each task: most are nearly sure or nearly hopeless, as in code."""
    chances: Floats = rng.beta(mean * 0.8, (1 - mean) * 0.8, tasks)
    return chances


def null_pairs(rng: np.random.Generator, pairs: int) -> Iterator[Row]:
    """The whole gate: three benchmarks, eight tags each. Two models with the same chances."""
    for alpha in (0.01, 0.05):
        promoted = won = 0
        for _ in range(pairs):
            sets = {name: task_chances(rng, tasks) for name, tasks in SETS.items()}
            old, new = (
                {name: card(who, name, rng.random(len(c)) < c) for name, c in sets.items()}
                for who in ("old", "new")
            )
            others = [(old[name], new[name]) for name in ("humaneval", "mbpp")]
            decision = decide(
                old["heldout"], new["heldout"], Policy(alpha=alpha, minimum_gain=0.0), others
            )
            promoted += decision.promoted
            won += decision.checks[0].passed
        yield alpha, pairs, _share(won, pairs), _share(promoted, pairs)


def successive(rng: np.random.Generator, histories: int) -> Iterator[Row]:
    """50 gates on the same 400 tasks, each against the champion of then. Unearned: a challenger
    truly no better was promoted.
    """
    rules: list[tuple[str, Spending]] = [
        ("0.05 each time", "fresh"),
        ("lord", "lord"),
        ("saffron", "saffron"),
    ]
    for better in (0.0, BETTER):
        for name, rule in rules:
            any_unearned, shares, found, chances_to = 0, [], 0, 0
            for _ in range(histories):
                unearned, earned, offered = _history(rng, rule, better)
                any_unearned += unearned > 0
                shares.append(unearned / max(1, unearned + earned))
                found, chances_to = found + earned, chances_to + offered
            yield (
                f"{100 * better:.0f} %",
                name,
                _share(any_unearned, histories),
                f"{np.mean(shares):.3f}",
                f"{found} of {chances_to}",
            )


def _history(rng: np.random.Generator, rule: Spending, better: float) -> tuple[int, int, int]:
    """Unearned and earned promotions, and how many challengers were better than the champion of
    then.
    """
    chances = task_chances(rng, 400, 0.3)
    skill, champion, gates = 0.0, rng.random(400) < chances, list[Gate]()
    unearned = earned = offered = 0
    for _ in range(GATES):
        theirs = skill + (GAIN if rng.random() < better and skill < 0.5 else 0.0)
        challenger = rng.random(400) < chances + theirs * (1 - chances)
        p = mcnemar(int((challenger & ~champion).sum()), int((champion & ~challenger).sum())).better
        gates.append(
            Gate(
                chain="",
                benchmark="b",
                benchmark_version="1",
                p_value=p,
                level=next_level(rule, 0.05, gates),
            )
        )
        offered += theirs > skill
        if gates[-1].significant:
            unearned, earned = unearned + (theirs <= skill), earned + (theirs > skill)
            champion, skill = challenger, theirs
    return unearned, earned, offered


def falls(rng: np.random.Generator, pairs: int) -> Iterator[Row]:
    """Non-inferiority with a margin of 5 points: how often each true fall passes."""
    for tasks in (164, 500):
        for fall in (0.05, 0.025, 0.0):
            for changed in (0.1, 0.3):
                drawn = rng.multinomial(
                    tasks, [(changed - fall) / 2, (changed + fall) / 2, 1 - changed], size=pairs
                )
                passed = sum(
                    not_worse(int(w), int(lost), tasks, 0.05) <= 0.05 for w, lost, _ in drawn
                )
                yield tasks, f"{-100 * fall:g}", changed, _share(passed, pairs)


def several_answers(rng: np.random.Generator, pairs: int) -> Iterator[Row]:
    """The paired bootstrap of pass@k, ten answers a task: null pairs, then the gain that was
    announced from the champion alone.
    """
    for tasks in (50, 164, 400):
        for k in (1, 5):
            false, seen, said = {0.01: 0, 0.05: 0}, 0, []
            for _ in range(pairs):
                chances = task_chances(rng, tasks)
                test = bootstrap_test(_differences(rng, chances, chances, k), draws=2000)
                for alpha in false:
                    false[alpha] += test.better <= alpha
            for _ in range(pairs // 4):
                chances = task_chances(rng, tasks)
                old, new = (_values(rng, np.clip(chances + step, 0, 1), k) for step in (0.0, 0.06))
                difference = np.subtract(new, old)
                seen += bootstrap_test(difference.tolist(), draws=2000).better <= 0.05
                truth = float(np.mean(_at(np.clip(chances + 0.06, 0, 1), k) - _at(chances, k)))
                said.append(mean_power(truth, float(difference.std()), tasks, 0.05))
            yield (
                tasks,
                k,
                _share(false[0.01], pairs),
                _share(false[0.05], pairs),
                f"{np.mean(said):.2f}",
                _share(seen, pairs // 4),
            )


def announced(rng: np.random.Generator, pairs: int) -> Iterator[Row]:
    """The smallest gain said before a challenger has answered, found four times in five? Half of
    the tasks decided alike, as it assumes.
    """
    for tasks in (164, 400, 1000):
        for share in (0.2, 0.5):
            gain = announced_share_gain(round(share * tasks), tasks, 0.01) or 0.0
            found = 0
            for _ in range(pairs):
                own = rng.random(tasks)
                other = np.where(rng.random(tasks) < 0.5, own, rng.random(tasks))
                before, after = own < share, other < share + gain
                found += (
                    mcnemar(int((after & ~before).sum()), int((before & ~after).sum())).better
                    <= 0.01
                )
            changed = 0.5 * gain + 0.5 * (share * (1 - share - gain) + (share + gain) * (1 - share))
            yield (
                tasks,
                share,
                f"{100 * gain:.1f}",
                "0.80",
                f"{power(gain, changed, tasks, 0.01):.2f}",
                _share(found, pairs),
            )


def coverage(rng: np.random.Generator, pairs: int) -> Iterator[Row]:
    """How often a 95 % interval holds the truth: the least over shares from 0.05 to 0.95, exactly;
    differences, pass@k and recipes by drawing.
    """
    from scipy.stats import binom

    shares = np.linspace(0.05, 0.95, 361)
    rules: list[tuple[str, Callable[[int, int], tuple[float, float]]]] = [
        ("Wilson", wilson),
        ("Wilson, wider at the edges", share_interval),
    ]
    for tasks in (20, 50, 100, 164, 378, 1000):
        chances = binom.pmf(np.arange(tasks + 1)[:, None], tasks, shares)
        for name, rule in rules:
            bounds = np.array([rule(solved, tasks) for solved in range(tasks + 1)])
            covered = (chances * ((bounds[:, :1] <= shares) & (shares <= bounds[:, 1:]))).sum(0)
            yield f"a share, {name}", tasks, f"{covered.min():.3f} at worst"
    for tasks in (50, 164, 500):
        worst = 1.0
        for changed, gain in ((0.05, 0.0), (0.05, 0.04), (0.3, 0.0), (0.3, 0.1)):
            drawn = rng.multinomial(
                tasks, [(changed + gain) / 2, (changed - gain) / 2, 1 - changed], size=pairs
            )
            held = [
                (interval := difference_interval(int(w), int(lost), tasks)).low
                <= gain
                <= interval.high
                for w, lost, _ in drawn
            ]
            worst = min(worst, float(np.mean(held)))
        yield "a difference of two shares (Tango)", tasks, f"{worst:.3f} at worst of four"
    for tasks in (50, 164, 500):
        held = []
        for _ in range(pairs):
            drawn = rng.binomial(10, task_chances(rng, tasks)).tolist()
            [at] = curve(drawn, [10] * tasks, [5], draws=2000)
            held.append(at.low <= POPULATION_AT_5 <= at.high)
        yield "pass@5 of 10 answers (bootstrap)", tasks, f"{np.mean(held):.3f}"
    for runs in (2, 3, 5):
        for between in (0.0, 0.03):
            held = []
            for _ in range(pairs // 4):
                chances = task_chances(rng, 164)
                sides = [
                    [
                        (rng.random(164) < np.clip(chances + rng.normal(0, between), 0, 1))
                        .astype(float)
                        .tolist()
                        for _ in range(runs)
                    ]
                    for _ in range(2)
                ]
                interval = compare_recipes(*sides, draws=2000).interval
                held.append(interval.low <= 0 <= interval.high)
            yield (
                f"recipes of {runs} runs, seeds {100 * between:g} points apart",
                164,
                f"{np.mean(held):.3f}",
            )


def _at(chances: Floats, k: int) -> Floats:
    return 1 - (1 - chances) ** k


POPULATION_AT_5 = float(np.mean(_at(task_chances(np.random.default_rng(99), 4_000_000), 5)))


def _values(rng: np.random.Generator, chances: Floats, k: int) -> list[float]:
    return estimates(rng.binomial(10, chances).tolist(), [10] * len(chances), k)


def _differences(rng: np.random.Generator, before: Floats, after: Floats, k: int) -> list[float]:
    return [
        new - old for old, new in zip(_values(rng, before, k), _values(rng, after, k), strict=True)
    ]


def _share(count: int, of: int) -> str:
    low, high = wilson(count, of)
    return f"{count / of:.4f} ({low:.4f} to {high:.4f})"


def speed() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for what, drawn in (
        ("200 answers each", np.full(1000, 200)),
        ("100 to 200 answers", rng.integers(100, 201, 1000)),
    ):
        correct = rng.binomial(drawn, task_chances(rng, 1000))
        began, used = time.perf_counter(), time.process_time()
        curve(correct.tolist(), drawn.tolist())
        yield (
            f"1,000 tasks, {what}, 10,000 draws, k from 1 to 100",
            f"{time.perf_counter() - began:.2f} s",
            f"{time.process_time() - used:.2f} s",
        )


def main() -> None:
    pairs, histories = (
        int(sys.argv[i]) if len(sys.argv) > i else most for i, most in ((1, 2000), (2, 200))
    )
    rng = np.random.default_rng(0)
    chapters: list[tuple[str, tuple[str, ...], Iterator[Row]]] = [
        ("Speed", ("pass@k curve", "time", "CPU"), speed()),
        (
            "50 gates on the same 400 tasks",
            ("better challengers", "level", "any unearned", "FDR", "earned found"),
            successive(rng, histories),
        ),
        (
            "Null pairs through the gate",
            ("alpha", "pairs", "win shown", "promoted"),
            null_pairs(rng, pairs),
        ),
        (
            "Not worse by 5 points, at 0.05",
            ("tasks", "true change, points", "tasks that change", "passes"),
            falls(rng, pairs),
        ),
        (
            "Several answers a task",
            ("tasks", "k", "false at 0.01", "false at 0.05", "power said, +6", "seen"),
            several_answers(rng, pairs // 2),
        ),
        (
            "Gains announced beforehand",
            ("tasks", "champion", "gain, points", "wanted", "exact", "seen"),
            announced(rng, pairs),
        ),
        ("Coverage of 95 % intervals", ("what", "tasks", "covers"), coverage(rng, pairs // 2)),
    ]
    for title, head, rows in chapters:
        print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
        for row in rows:
            print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main()
