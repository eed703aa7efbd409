"""What verl's batch says of one completion: its sample, and whether it solved its problem."""

from __future__ import annotations

import json
from typing import Any

from verl_jobs.samples import Sample, weights_of


def unwrapped(field: Any) -> dict[str, Any]:
    data: dict[str, Any] = getattr(field, "data", field)
    return data


def sample_of(extra_info: Any, fields: dict[str, Any], scores: Any, cut: bool) -> Sample:
    """Return the sample of a completion. fields: verl's `extra_fields`."""
    reward_info = fields.get("reward_extra_info", {})
    return Sample(
        problem_id=str(unwrapped(extra_info).get("problem_id", "")),
        answer=str(reward_info.get("answer", "")),
        reward=float(scores.sum()),
        verdict=str(reward_info.get("verdict", "")),
        tests_passed=float(reward_info.get("tests_passed", 0.0)),
        trace=json.loads(reward_info.get("trace", "{}")),
        cut=cut,
        weights=weights_of(fields),
    )


def outcome_of(extra_info: Any, reward_info: dict[str, Any]) -> tuple[str, bool]:
    """Return the problem and whether the completion solved it. Raises ValueError without `acc`."""
    if "acc" not in reward_info:
        raise ValueError(
            "a curriculum needs `acc` of every completion, and this reward manager returns none: "
            "add it, or set training.curriculum.schedule to uniform"
        )
    return str(unwrapped(extra_info).get("problem_id", "")), reward_info["acc"] == 1
