"""verl's advantages and losses with our overrides match the formulas of the papers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from verl_jobs.config.algorithms import ALGORITHMS, NAMES, Name
from verl_jobs.config.overrides import overrides
from verl_jobs.config.training import Training

pytestmark = pytest.mark.slow  # importing verl takes longer than all of this

# two problems, completions of 3, 2, 1 and of 2, 3 tokens
PROMPTS = np.array(["a", "a", "a", "b", "b"], dtype=object)
LENGTHS = [3, 2, 1, 2, 3]
REWARDS = [1.0, 0.0, 0.5, -1.0, 1.0]
GROUPS = [[0, 1, 2], [3, 4]]


def mask() -> torch.Tensor:
    return torch.tensor([[float(t < length) for t in range(3)] for length in LENGTHS])


def rewards(values: list[float] | None = None) -> torch.Tensor:
    """Return the rewards, each at the last token of its completion."""
    tensor = torch.zeros(5, 3)
    for row, (length, value) in enumerate(zip(LENGTHS, values or REWARDS, strict=True)):
        tensor[row, length - 1] = value
    return tensor


def algo(name: Name) -> Any:
    """Return verl's algorithm section with our overrides."""
    from verl.trainer.config import AlgoConfig

    settings = dict(line.lstrip("+").split("=", 1) for line in ALGORITHMS[name].overrides)
    known: dict[str, Callable[[str], Any]] = {
        "algorithm.norm_adv_by_std_in_grpo": lambda v: v == "True",
        "algorithm.gamma": float,
        "algorithm.lam": float,
    }
    return AlgoConfig(
        **{
            key.removeprefix("algorithm."): read(settings[key])
            for key, read in known.items()
            if key in settings
        }
    )


def advantages(
    name: Name, gamma: float | None = None, lam: float | None = None, **more: Any
) -> list[list[float]]:
    """Return the advantages of verl's trainer, (completions, tokens).

    gamma, lam: None for those of our overrides.
    """
    from verl.protocol import DataProto
    from verl.trainer.ppo.ray_trainer import compute_advantage

    import verl_jobs.trainer.remax  # noqa: F401  # registers our estimator

    estimator = next(
        line.split("=")[1] for line in ALGORITHMS[name].overrides if "adv_estimator" in line
    )
    config = algo(name)
    data = DataProto.from_single_dict(
        {"response_mask": mask(), "token_level_rewards": rewards(), **more}
    )
    data.non_tensor_batch["uid"] = PROMPTS
    done = compute_advantage(
        data,
        estimator,
        gamma=config.gamma if gamma is None else gamma,
        lam=config.lam if lam is None else lam,
        norm_adv_by_std_in_grpo=config.norm_adv_by_std_in_grpo,
        config=config,
    )
    return [
        [value for value, inside in zip(row, m, strict=True) if inside]
        for row, m in zip(done.batch["advantages"].tolist(), mask(), strict=True)
    ]


def near(advantages: list[list[float]], expected: list[list[float]]) -> None:
    assert [len(row) for row in advantages] == LENGTHS
    assert [value for row in advantages for value in row] == pytest.approx(
        [value for row in expected for value in row], abs=1e-4
    )


def same(values: list[float]) -> list[list[float]]:
    """Return each value at every token of its completion."""
    return [[value] * length for value, length in zip(values, LENGTHS, strict=True)]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def deviation(values: list[float]) -> float:
    """Return the sample deviation (n - 1), as in the published code."""
    return math.sqrt(sum((value - mean(values)) ** 2 for value in values) / (len(values) - 1))


def whitened(rows: list[list[float]]) -> list[list[float]]:
    flat = [value for row in rows for value in row]
    return [[(value - mean(flat)) / deviation(flat) for value in row] for row in rows]


def by_group(rule: Any) -> list[float]:
    """Return rule(own reward, rewards of its group) for each completion."""
    values = [0.0] * len(REWARDS)
    for group in GROUPS:
        for at in group:
            values[at] = rule(REWARDS[at], [REWARDS[other] for other in group])
    return values


@pytest.mark.parametrize("name", ["grpo", "dapo", "gspo", "cispo"])
def test_group_relative_advantages(name: Name) -> None:
    near(advantages(name), same(by_group(lambda r, group: (r - mean(group)) / deviation(group))))


def test_dr_grpo_does_not_divide_by_the_deviation() -> None:
    near(advantages("dr_grpo"), same(by_group(lambda r, group: r - mean(group))))


def test_rloo_subtracts_the_mean_of_the_other_completions() -> None:
    near(
        advantages("rloo"), same(by_group(lambda r, group: r - (sum(group) - r) / (len(group) - 1)))
    )


def test_reinforce_plus_plus_whitens_returns_over_all_tokens() -> None:
    near(advantages("reinforce_plus_plus"), whitened(same(REWARDS)))


def test_reinforce_plus_plus_with_baseline_centers_by_group_first() -> None:
    near(
        advantages("reinforce_plus_plus_baseline"),
        whitened(same(by_group(lambda r, group: r - mean(group)))),
    )


def test_remax_subtracts_the_reward_of_the_greedy_completion() -> None:
    from verl_jobs.trainer.remax import store_baselines

    store_baselines({"a": 0.25, "b": -0.5})
    near(
        advantages("remax"),
        same(
            [
                r - (0.25 if prompt == "a" else -0.5)
                for r, prompt in zip(REWARDS, PROMPTS, strict=True)
            ]
        ),
    )


def test_remax_without_a_greedy_completion_raises() -> None:
    from verl_jobs.trainer.remax import store_baselines

    store_baselines({"a": 0.25})
    with pytest.raises(KeyError, match="b"):
        advantages("remax")


@pytest.mark.parametrize(("gamma", "lam"), [(None, None), (0.9, 0.8)])
def test_ppo_advantage_is_whitened_gae(gamma: float | None, lam: float | None) -> None:
    """A_t sums (gamma lambda)^l delta_{t+l} over l; delta_t = r_t + gamma V_{t+1} - V_t."""
    g, both = gamma or 1.0, (gamma or 1.0) * (lam or 1.0)
    values = [[0.1 * (row + 1) - 0.2 * t for t in range(3)] for row in range(5)]
    expected = []
    for row, length in enumerate(LENGTHS):
        of_row = values[row][:length]
        deltas = [
            (REWARDS[row] if t == length - 1 else 0.0)
            + (g * of_row[t + 1] if t + 1 < length else 0.0)
            - of_row[t]
            for t in range(length)
        ]
        expected.append(
            [sum(both ** (s - t) * deltas[s] for s in range(t, length)) for t in range(length)]
        )
    near(advantages("ppo", gamma, lam, values=torch.tensor(values)), whitened(expected))


def test_grpo_passk_rewards_only_the_best_completion_by_its_margin() -> None:
    """The maximum of the group minus that of the others (arXiv:2503.19595), not normalized."""
    expected = [0.0] * 5
    for group in GROUPS:
        for at in group:
            expected[at] = max(REWARDS[other] for other in group) - max(
                REWARDS[other] for other in group if other != at
            )
    near(advantages("grpo_passk"), same(expected))


# losses: log-probabilities of two completions, old and new
OLD = [[-1.0, -2.0, -0.5], [-0.7, -1.1]]
NEW = [[-0.6, -2.5, -0.5], [-1.2, -0.2]]
ADVANTAGES = [1.5, -0.8]


def loss(name: Name, width: int = 3) -> float:
    """Return the loss of both completions in a micro-batch `width` tokens wide."""
    from verl.trainer.ppo.core_algos import get_policy_loss_fn
    from verl.workers.config import FSDPActorConfig

    lines = overrides(
        Training(algorithm=name),
        seed=1,
        model=_path(),
        train=_path(),
        validation=_path(),
        folder=_path(),
        loggers=[],
        name="t",
    )
    actor = {
        line.lstrip("+").split("=", 1)[0].removeprefix("actor_rollout_ref.actor."): line.split(
            "=", 1
        )[1]
        for line in lines
        if "actor_rollout_ref.actor." in line
    }
    clip = {key: float(actor[key]) for key in ("clip_ratio_low", "clip_ratio_high") if key in actor}
    config = FSDPActorConfig(
        strategy="fsdp2", use_dynamic_bsz=True, rollout_n=2, ppo_mini_batch_size=1, **clip
    )
    if "loss_scale_factor" in actor:
        config.global_batch_info["loss_scale_factor"] = int(
            actor["loss_scale_factor"]
        )  # as verl/workers/utils/losses.py passes it
    function = get_policy_loss_fn(actor.get("policy_loss.loss_mode", "vanilla"))

    def padded(rows: list[list[float]]) -> torch.Tensor:
        return torch.tensor([row + [0.0] * (width - len(row)) for row in rows])

    inside = padded([[1.0] * len(row) for row in OLD])
    weights = padded([[value] * len(row) for value, row in zip(ADVANTAGES, OLD, strict=True)])
    value_of_loss, _ = function(
        padded(OLD),
        padded(NEW),
        weights,
        inside,
        loss_agg_mode=actor["loss_agg_mode"],
        config=config,
    )
    return float(value_of_loss)


def _path() -> Any:
    from pathlib import Path

    return Path("x")


def surrogate(low: float, high: float) -> list[list[float]]:
    """Return -min(rho A, clip(rho) A) per token, dual clip at 3 for a negative advantage."""
    rows = []
    for old, new, a in zip(OLD, NEW, ADVANTAGES, strict=True):
        ratios = [math.exp(n - o) for o, n in zip(old, new, strict=True)]
        clipped = [min(rho * a, max(1 - low, min(1 + high, rho)) * a) for rho in ratios]
        rows.append([-(max(value, 3.0 * a) if a < 0 else value) for value in clipped])
    return rows


@pytest.mark.parametrize(("name", "high"), [("ppo", 0.2), ("grpo", 0.2), ("dapo", 0.28)])
def test_the_clipped_surrogate_is_averaged_over_tokens(name: Name, high: float) -> None:
    assert loss(name) == pytest.approx(
        mean([value for row in surrogate(0.2, high) for value in row]), abs=1e-6
    )


@pytest.mark.parametrize("width", [3, 11])
def test_dr_grpo_divides_by_one_constant_in_every_micro_batch(
    width: int,
) -> None:
    longest = Training(algorithm="dr_grpo").answer_tokens
    assert loss("dr_grpo", width) == pytest.approx(
        mean([sum(row) for row in surrogate(0.2, 0.2)]) / longest, abs=1e-7
    )


def test_gspo_uses_one_ratio_for_the_whole_completion() -> None:
    rows = []
    for old, new, a in zip(OLD, NEW, ADVANTAGES, strict=True):
        rho = math.exp(mean([n - o for o, n in zip(old, new, strict=True)]))
        rows.append(-min(rho * a, max(1 - 3e-4, min(1 + 4e-4, rho)) * a))
    assert loss("gspo") == pytest.approx(mean(rows), abs=1e-6)


def test_cispo_weights_log_probabilities_by_the_clipped_ratio() -> None:
    flat = [
        -min(1.2, math.exp(n - o)) * a * n
        for old, new, a in zip(OLD, NEW, ADVANTAGES, strict=True)
        for o, n in zip(old, new, strict=True)
    ]  # fmt: skip
    assert loss("cispo") == pytest.approx(mean(flat), abs=1e-6)


def test_dapo_penalty_starts_in_the_last_fifth_and_reaches_one() -> None:
    from verl_jobs.trainer.reward_manager import overlong

    training = Training(algorithm="dapo", answer_tokens=100)
    assert [overlong(training, tokens, 100) for tokens in (1, 80, 85, 90, 100)] == pytest.approx(
        [0.0, 0.0, -0.25, -0.5, -1.0]
    )
    assert overlong(training, 45, 50) == pytest.approx(-0.5)
    assert overlong(Training(algorithm="grpo"), 100, 100) == 0.0
    assert overlong(Training(algorithm="dapo", overlong="mask"), 100, 100) == 0.0
    assert overlong(Training(overlong="penalty"), 90, 100) == pytest.approx(-0.5)


def test_every_algorithm_names_its_paper_and_rule() -> None:
    assert set(ALGORITHMS) == set(NAMES)
    assert all("arXiv:" in method.paper and method.rule for method in ALGORITHMS.values())
