"""Error rates, power and coverage of the statistics behind comparison and promotion, by simulation.

`python -m measurements.promotions [pairs] [histories]`: 2,000 null pairs and 200 histories of 50
gates. Both models share each task's difficulty; a model's completions are sampled from its chance
on each task.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from evaluation.promotion.gate import decide
from evaluation.promotion.policy import Policy
from evaluation.scorecard import Scorecard, ScoredSample
from evaluation.statistics.alpha_spending import Gate, Spending, next_level
from evaluation.statistics.hypothesis_tests import Floats, mcnemar, power, share_interval, wilson
from evaluation.statistics.paired import (
    announced_share_gain,
    difference_interval,
    mean_power,
    not_worse,
)
from evaluation.statistics.pass_at_k import estimates
from evaluation.statistics.seeds import compare_recipes
from evaluation.statistics.sign_flips import sign_flip_test

Row = tuple[object, ...]
SETS = {"heldout": 400, "humaneval": 164, "mbpp": 500}
# A history: number of gates, share of challengers that are better, and their gain.
GATES, BETTER, GAIN = 50, 0.2, 0.1


def card(name: str, benchmark: str, solved: NDArray[np.bool_]) -> Scorecard:
    samples = tuple(
        ScoredSample.model_construct(
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
    """Return a model's chance on each task; most are close to 0 or 1, as for code models."""
    chances: Floats = rng.beta(mean * 0.8, (1 - mean) * 0.8, tasks)
    return chances


def null_pairs(rng: np.random.Generator, pairs: int) -> Iterator[Row]:
    """Yield how often the complete gate promotes a challenger with the champion's own chances.

    Three benchmarks with eight tags each.
    """
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
    """Yield the results of 50 gates on the same 400 tasks, each against the current champion.

    Unearned: the promoted challenger's true chances are no better.
    """
    rules: list[tuple[str, Spending]] = [
        ("0.05 each time", "fresh"),
        ("lord", "lord"),
        ("saffron", "saffron"),
    ]
    for better in (0.0, BETTER):
        for name, rule in rules:
            any_unearned, shares, all_earned, all_better = 0, [], 0, 0
            for _ in range(histories):
                unearned, earned, better_count = _history(rng, rule, better)
                any_unearned += unearned > 0
                shares.append(unearned / max(1, unearned + earned))
                all_earned, all_better = all_earned + earned, all_better + better_count
            yield (
                f"{100 * better:.0f} %",
                name,
                _share(any_unearned, histories),
                f"{np.mean(shares):.3f}",
                f"{all_earned} of {all_better}",
            )


def _history(rng: np.random.Generator, rule: Spending, better: float) -> tuple[int, int, int]:
    """Return the unearned promotions, the earned ones, and how many challengers were better than
    the champion at their gate.
    """
    chances = task_chances(rng, 400, 0.3)
    skill, champion, gates = 0.0, rng.random(400) < chances, list[Gate]()
    unearned = earned = better_count = 0
    for _ in range(GATES):
        challenger_skill = skill + (GAIN if rng.random() < better and skill < 0.5 else 0.0)
        challenger = rng.random(400) < chances + challenger_skill * (1 - chances)
        p = mcnemar(int((challenger & ~champion).sum()), int((champion & ~challenger).sum())).better
        gates.append(
            Gate(
                run_id="",
                benchmark="b",
                benchmark_version="1",
                p_value=p,
                level=next_level(rule, 0.05, gates),
            )
        )
        better_count += challenger_skill > skill
        if gates[-1].significant:
            unearned += challenger_skill <= skill
            earned += challenger_skill > skill
            champion, skill = challenger, challenger_skill
    return unearned, earned, better_count


def falls(rng: np.random.Generator, pairs: int) -> Iterator[Row]:
    """Yield how often a true fall passes the non-inferiority test with a margin of 5 points."""
    for tasks in (164, 500):
        for fall in (0.05, 0.025, 0.0):
            for changed in (0.1, 0.3):
                counts = rng.multinomial(
                    tasks, [(changed - fall) / 2, (changed + fall) / 2, 1 - changed], size=pairs
                )
                passed = sum(
                    not_worse(int(won), int(lost), tasks, 0.05) <= 0.05 for won, lost, _ in counts
                )
                yield tasks, f"{-100 * fall:g}", changed, _share(passed, pairs)


def several_completions(rng: np.random.Generator, pairs: int) -> Iterator[Row]:
    """Yield error rate and power of sign flips for pass@k, ten completions per task.

    The power is the one predicted by `mean_power`, then the observed one.
    """
    for tasks in (50, 164, 400):
        for k in (1, 5):
            false, significant, predicted = {0.01: 0, 0.05: 0}, 0, []
            for _ in range(pairs):
                chances = task_chances(rng, tasks)
                test = sign_flip_test(_differences(rng, chances, chances, k))
                for alpha in false:
                    false[alpha] += test.better <= alpha
            for _ in range(pairs // 4):
                chances = task_chances(rng, tasks)
                old, new = (_values(rng, np.clip(chances + step, 0, 1), k) for step in (0.0, 0.06))
                difference = np.subtract(new, old)
                significant += sign_flip_test(difference).better <= 0.05
                truth = float(np.mean(_at(np.clip(chances + 0.06, 0, 1), k) - _at(chances, k)))
                predicted.append(mean_power(truth, float(difference.std()), tasks, 0.05))
            yield (
                tasks,
                k,
                _share(false[0.01], pairs),
                _share(false[0.05], pairs),
                f"{np.mean(predicted):.2f}",
                _share(significant, pairs // 4),
            )


def announced(rng: np.random.Generator, pairs: int) -> Iterator[Row]:
    """Yield the power at the smallest detectable gain that is announced before generation: 0.8 by
    design. Both models agree on half of the tasks, as the announcement assumes.
    """
    for tasks in (164, 400, 1000):
        for share in (0.2, 0.5):
            gain = announced_share_gain(round(share * tasks), tasks, 0.01) or 0.0
            significant = 0
            for _ in range(pairs):
                draw = rng.random(tasks)
                other = np.where(rng.random(tasks) < 0.5, draw, rng.random(tasks))
                before, after = draw < share, other < share + gain
                significant += (
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
                _share(significant, pairs),
            )


def coverage(rng: np.random.Generator, pairs: int) -> Iterator[Row]:
    """Yield how often a 95 % interval contains the truth.

    For shares this is the exact minimum over shares from 0.02 to 0.98; differences and recipes are
    simulated.
    """
    from scipy.stats import binom

    shares = np.linspace(0.02, 0.98, 385)
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
            counts = rng.multinomial(
                tasks, [(changed + gain) / 2, (changed - gain) / 2, 1 - changed], size=pairs
            )
            covers = [
                (interval := difference_interval(int(won), int(lost), tasks)).low
                <= gain
                <= interval.high
                for won, lost, _ in counts
            ]
            worst = min(worst, float(np.mean(covers)))
        yield "a difference of two shares (Tango)", tasks, f"{worst:.3f} at worst of four"
    for runs in (2, 3, 5):
        for between in (0.0, 0.03):
            covers = []
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
                covers.append(interval.low <= 0 <= interval.high)
            yield (
                f"recipes of {runs} runs, seeds {100 * between:g} points apart",
                164,
                f"{np.mean(covers):.3f}",
            )


def _at(chances: Floats, k: int) -> Floats:
    return 1 - (1 - chances) ** k


def _values(rng: np.random.Generator, chances: Floats, k: int) -> list[float]:
    return estimates(rng.binomial(10, chances).tolist(), [10] * len(chances), k)


def _differences(rng: np.random.Generator, before: Floats, after: Floats, k: int) -> list[float]:
    return [
        new - old for old, new in zip(_values(rng, before, k), _values(rng, after, k), strict=True)
    ]


def _share(count: int, of: int) -> str:
    low, high = wilson(count, of)
    return f"{count / of:.4f} ({low:.4f} to {high:.4f})"


def main() -> None:
    pairs, histories = (
        int(sys.argv[i]) if len(sys.argv) > i else most for i, most in ((1, 2000), (2, 200))
    )
    rng = np.random.default_rng(0)
    sections: list[tuple[str, tuple[str, ...], Iterator[Row]]] = [
        (
            "50 gates on the same 400 tasks",
            ("better challengers", "level", "any unearned", "FDR", "better ones promoted"),
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
            "Several completions per task",
            ("tasks", "k", "false at 0.01", "false at 0.05", "predicted power, +6", "observed"),
            several_completions(rng, pairs // 2),
        ),
        (
            "Power at the announced gain",
            ("tasks", "champion", "gain, points", "by design", "exact", "observed"),
            announced(rng, pairs),
        ),
        ("Coverage of 95 % intervals", ("interval", "tasks", "covers"), coverage(rng, pairs // 2)),
    ]
    for title, head, rows in sections:
        print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
        for row in rows:
            print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main()
