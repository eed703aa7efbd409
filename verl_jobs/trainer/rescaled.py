"""Rewards on another scale before anything is made of them: less their mean in the step, over their standard deviation, and cut.

For algorithms that do not divide by a deviation themselves (rloo, remax, dr_grpo, the critic of ppo): their gradient and the critic's targets then
have the same size whatever a reward pays. Each step is normalised by itself: nothing is carried from step to step that a resumed run could lack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev

from rewards.watch import PREFIX

RAW = f"{PREFIX}/reward_as_paid"  # the mean before it was rescaled: verl's own reward metrics are of what comes after
CLIPPED = f"{PREFIX}/rewards_cut"  # share


def rescaled(rewards: Sequence[float], *, normalised: bool, clip: float) -> list[float]:
    """In the order given. Equal rewards have no deviation and stay as they are; clip 0 cuts nothing."""
    mean, spread = _moments(rewards, normalised)
    scaled = [(reward - mean) / spread for reward in rewards]
    return [max(-clip, min(clip, reward)) for reward in scaled] if clip else scaled


def rescale(
    keys: Sequence[str],
    partition_id: str,
    baselines: Mapping[str, float],
    *,
    normalised: bool,
    clip: float,
) -> dict[str, float]:
    """Writes the rewards of a batch back on the new scale, and ReMax's baselines (by prompt) with them; returns the step's figures.

    A reward is the sum over an answer's tokens: each token's part is divided, the mean and what is cut come off the last.
    """
    import transfer_queue as tq
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    from verl_jobs.trainer import remax

    scores = list(
        tq.kv_batch_get(keys=list(keys), partition_id=partition_id, select_fields=["rm_scores"])[
            "rm_scores"
        ]
    )  # (tokens) each
    paid = [float(each.sum()) for each in scores]
    every = [*paid, *baselines.values()]
    made, (_, spread) = (
        rescaled(every, normalised=normalised, clip=clip),
        _moments(every, normalised),
    )
    if baselines:
        remax.remember(dict(zip(baselines, made[len(paid) :], strict=True)))
    fields = []
    for each, was, now in zip(scores, paid, made, strict=False):
        parts = each / spread
        parts[-1] += now - was / spread
        fields.append({"rm_scores": parts})
    tq.kv_batch_put(
        keys=list(keys), partition_id=partition_id, fields=list_of_dict_to_tensordict(fields)
    )
    return {
        RAW: fmean(paid),
        CLIPPED: fmean(abs(now) == clip for now in made[: len(paid)]) if clip else 0.0,
    }


def _moments(rewards: Sequence[float], normalised: bool) -> tuple[float, float]:
    """What is taken off, and what is divided by."""
    spread = pstdev(rewards) if normalised and len(rewards) > 1 else 0.0
    return (fmean(rewards), spread) if spread > 0 else (0.0, 1.0)
