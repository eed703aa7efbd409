"""Rescaled rewards: normalised to mean 0 and standard deviation 1 in each step, and clipped.

For algorithms that do not divide by a deviation themselves (rloo, remax, dr_grpo, the critic of
ppo). The size of their gradient and of the critic's targets then does not depend on the reward's
scale. Each step is normalised separately, so a resumed run needs no state of earlier steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev

from rewards.watch import PREFIX

# mean before rescaling; verl's own reward metrics are computed after it
RAW = f"{PREFIX}/reward_as_paid"
CLIPPED = f"{PREFIX}/rewards_cut"  # share of clipped rewards


def rescaled(rewards: Sequence[float], *, normalised: bool, clip: float) -> list[float]:
    """Return the rescaled rewards in the given order.

    Equal rewards have no deviation and stay unchanged; clip 0 does not clip.
    """
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
    """Rescale the rewards of a batch in place, and ReMax's baselines (by prompt).

    Return the metrics. A reward is the sum over a completion's tokens: each token's part is
    divided, and the mean and the clipped amount are subtracted from the last token.
    """
    import transfer_queue as tq
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    from verl_jobs.trainer import remax

    # (tokens) each
    scores = list(
        tq.kv_batch_get(keys=list(keys), partition_id=partition_id, select_fields=["rm_scores"])[
            "rm_scores"
        ]
    )
    rewards = [float(tokens.sum()) for tokens in scores]
    values = [*rewards, *baselines.values()]
    rescaled_values, (_, spread) = (
        rescaled(values, normalised=normalised, clip=clip),
        _moments(values, normalised),
    )
    if baselines:
        remax.store_baselines(dict(zip(baselines, rescaled_values[len(rewards) :], strict=True)))
    fields = []
    for tokens, before, after in zip(scores, rewards, rescaled_values, strict=False):
        parts = tokens / spread
        parts[-1] += after - before / spread
        fields.append({"rm_scores": parts})
    tq.kv_batch_put(
        keys=list(keys), partition_id=partition_id, fields=list_of_dict_to_tensordict(fields)
    )
    return {
        RAW: fmean(rewards),
        CLIPPED: fmean(abs(after) == clip for after in rescaled_values[: len(rewards)])
        if clip
        else 0.0,
    }


def _moments(rewards: Sequence[float], normalised: bool) -> tuple[float, float]:
    """Return the value to subtract and the value to divide by."""
    spread = pstdev(rewards) if normalised and len(rewards) > 1 else 0.0
    return (fmean(rewards), spread) if spread > 0 else (0.0, 1.0)
