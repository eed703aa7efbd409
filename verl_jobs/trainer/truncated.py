"""Which completions are truncated, and those that are not learned from.

They count in their group's baseline. An empty mask keeps a completion out of the loss: a correct
solution that only ran out of tokens is then no evidence against its beginning (DeepCoder's overlong
filtering).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewards.watch import PREFIX
from verl_jobs.samples import BY_LENGTH

MASKED = f"{PREFIX}/truncated_answers_masked"  # share of the step's completions
MASKS = ["response_mask", "loss_mask"]


def is_truncated(extra_fields: dict[str, Any], scores: Any, limit: int) -> bool:
    """Whether the completion was truncated. scores: (tokens); limit: its maximum length.

    If the agent loop gives no stop reason, a completion of the maximum length counts as truncated.
    verl's `response_length/clip_ratio` differs: it is the share of completions as long as the
    longest of their batch.
    """
    return bool(
        extra_fields["stop_reason"] == BY_LENGTH
        if "stop_reason" in extra_fields
        else len(scores) >= limit
    )


def mask(keys: Sequence[str], total: int, partition_id: str) -> dict[str, float]:
    """Empty the masks of these completions of a step with `total`; return the metrics.

    If all are truncated none is masked: a loss over no token is not a number.
    """
    import transfer_queue as tq
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    if not keys or len(keys) == total:
        return {MASKED: 0.0}
    stored = tq.kv_batch_get(keys=list(keys), partition_id=partition_id, select_fields=MASKS)
    # (tokens) each
    rows = [
        {name: 0 * row for name, row in zip(MASKS, masks, strict=True)}
        for masks in zip(*(stored[name] for name in MASKS), strict=True)
    ]
    tq.kv_batch_put(
        keys=list(keys), partition_id=partition_id, fields=list_of_dict_to_tensordict(rows)
    )
    return {MASKED: len(keys) / total}
