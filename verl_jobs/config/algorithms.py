"""The reinforcement-learning algorithms that a profile can name, as sets of verl overrides.

Each `Algorithm` has its paper, its rule in one line, and the overrides that differ from those of
every run (verl_jobs/config/overrides.py). A new entry of `ALGORITHMS` adds one: the entries are
short and are read side by side, so they share this file. This module does not import verl, so that
`ratchet train --algorithm X --show` answers immediately.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

# our estimator (verl_jobs/trainer/remax.py): verl's v1 trainer passes no baselines to verl's own
REMAX = "remax_greedy"
# maximum number of groups, in batches, that DAPO drops in one step; later groups are accepted
MAX_DROPPED = 3
# DAPO's length penalty applies to this last share of the maximum length; the paper: 4,096 of 20,480
OVERLONG_SHARE = 0.2


@dataclass(frozen=True)
class Algorithm:
    """An algorithm and its verl overrides.

    `rule` uses the paper's notation: r is a reward, G the number of completions of a problem, A an
    advantage, and rho the ratio of a token's new probability to its old one.
    """

    title: str
    paper: str
    rule: str
    overrides: tuple[str, ...]
    # minimum number of scored completions of a problem; with fewer there is no baseline
    least: int = 2
    unrun: str = ""  # why no training has been run with it

    @property
    def greedy(self) -> bool:
        """Whether each problem needs a greedy completion in addition to the sampled ones."""
        return f"algorithm.adv_estimator={REMAX}" in self.overrides

    @property
    def critic(self) -> bool:
        return "algorithm.adv_estimator=gae" in self.overrides

    @property
    def clips(self) -> bool:
        """Whether the algorithm defines its own clip range."""
        return any("clip_ratio_low=" in override for override in self.overrides)

    @property
    def sums_over_tokens(self) -> bool:
        """Whether the loss is summed over tokens and divided by the maximum completion length."""
        return _actor("loss_agg_mode", "seq-mean-token-sum-norm") in self.overrides

    @property
    def drops_equal_groups(self) -> bool:
        return "algorithm.filter_groups.enable=True" in self.overrides


def _estimator(name: str, *more: str) -> tuple[str, ...]:
    return (f"algorithm.adv_estimator={name}", *more)


def _actor(key: str, value: object) -> str:
    return f"actor_rollout_ref.actor.{key}={value}"


GROUP = "A = (r - mean of the G completions) / (their standard deviation)"
CONFIG_ONLY = "an entry of the configuration with its formula tested; no training was run with it"

ALGORITHMS: dict[str, Algorithm] = {
    "ppo": Algorithm(
        "PPO with a critic",
        "Schulman et al. 2017, arXiv:1707.06347; GAE: arXiv:1506.02438",
        (
            "A_t = sum over l of (gamma lambda)^l (r_{t+l} + gamma V_{t+l+1} - V_{t+l}), whitened "
            "over the batch; min(rho A, clip(rho, 0.8, 1.2) A)"
        ),
        _estimator("gae", "algorithm.gamma=1.0", "algorithm.lam=1.0"),
        least=1,
    ),
    "grpo": Algorithm(
        "GRPO", "Shao et al. 2024 (DeepSeekMath), arXiv:2402.03300", GROUP, _estimator("grpo")
    ),
    "dr_grpo": Algorithm(
        "Dr. GRPO",
        "Liu et al. 2025, arXiv:2503.20783",
        (
            "A = r - mean of the G completions; the loss is summed over tokens and divided by a "
            "constant, the longest that a completion may be"
        ),
        _estimator(
            "grpo",
            "algorithm.norm_adv_by_std_in_grpo=False",
            _actor("loss_agg_mode", "seq-mean-token-sum-norm"),
        ),
    ),
    "rloo": Algorithm(
        "RLOO",
        "Ahmadian et al. 2024, arXiv:2402.14740",
        "A = r - mean of the other G - 1 completions of the same problem",
        _estimator("rloo"),
    ),
    "reinforce_plus_plus": Algorithm(
        "REINFORCE++",
        "Hu 2025, arXiv:2501.03262",
        (
            "A_t = return from t, less the batch's mean and over its standard deviation, over all "
            "tokens"
        ),
        _estimator("reinforce_plus_plus"),
        least=1,
    ),
    "reinforce_plus_plus_baseline": Algorithm(
        "REINFORCE++ with a baseline",
        "Hu 2025, arXiv:2501.03262",
        "A = r - mean of the G completions, then less the batch's mean and over its standard "
        "deviation",
        _estimator("reinforce_plus_plus_baseline"),
    ),
    "remax": Algorithm(
        "ReMax",
        "Li et al. 2023, arXiv:2310.10505",
        "A = r - reward of the greedy completion of the same problem",
        _estimator(REMAX),
        least=1,
    ),
    "dapo": Algorithm(
        "DAPO, decoupled clip and dynamic sampling",
        "Yu et al. 2025, arXiv:2503.14476",
        f"{GROUP}; groups that are all solved or all unsolved are drawn again until "
        f"{MAX_DROPPED} batches' worth are dropped; clip(rho, 0.8, 1.28); "
        f"mean over tokens; a completion that reaches into the last {OVERLONG_SHARE:.0%} of its "
        "length loses up to 1",
        _estimator(
            "grpo",
            "algorithm.filter_groups.enable=True",
            # as in the paper: by `reward`, an unsolved group would stay because its completions
            # differ in length
            "algorithm.filter_groups.metric=acc",
            _actor("clip_ratio_low", 0.2),
            _actor("clip_ratio_high", 0.28),
            _actor("loss_agg_mode", "token-mean"),
        ),
    ),
    "gspo": Algorithm(
        "GSPO",
        "Zheng et al. 2025, arXiv:2507.18071",
        (
            f"{GROUP}; the ratio is that of the whole completion, to the power of 1 over its "
            "length, clipped to (1 - 3e-4, 1 + 4e-4)"
        ),
        _estimator(
            "grpo",
            _actor("policy_loss.loss_mode", "gspo"),
            _actor("loss_agg_mode", "seq-mean-token-mean"),
            _actor("clip_ratio_low", "3e-4"),
            _actor("clip_ratio_high", "4e-4"),
        ),
        unrun=CONFIG_ONLY,
    ),
    "cispo": Algorithm(
        "CISPO",
        "MiniMax 2025 (MiniMax-M1), arXiv:2506.13585",
        (
            f"{GROUP}; the gradient of log p is weighed by the ratio, cut at 1.2 and held "
            "constant, so that no token loses its gradient"
        ),
        _estimator(
            "grpo",
            _actor("policy_loss.loss_mode", "cispo"),
            _actor("clip_ratio_low", 10.0),
            _actor("clip_ratio_high", 0.2),
        ),
        unrun=CONFIG_ONLY,
    ),
    "grpo_passk": Algorithm(
        "GRPO for pass@k",
        "Tang et al. 2025, arXiv:2503.19595",
        "A of the best of the G completions = its reward - that of the second best; the others "
        "get 0",
        _estimator("grpo_passk", "algorithm.norm_adv_by_std_in_grpo=False"),
        unrun=CONFIG_ONLY,
    ),
}

NAMES = tuple(ALGORITHMS)
if TYPE_CHECKING:  # a type checker cannot know the entries
    Name = str
else:
    Name = Literal[NAMES]
