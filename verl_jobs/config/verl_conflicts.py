"""Overrides of verl that would only fail while the training runs; they are refused before."""

from __future__ import annotations

from collections.abc import Sequence

from verl_jobs.config.verl_schema import FORM

STRATEGIES = ("actor_rollout_ref.actor.strategy", "critic.strategy")
BYPASS = "algorithm.rollout_correction.bypass_mode"


def conflict(lines: Sequence[str], *, megatron: bool, entropy_target: float) -> str:
    """Return which override cannot work with the training's settings, with the fix.

    Empty if all can. lines: valid overrides (verl_jobs/config/verl_schema.py); the last of a name
    counts.
    """
    values = {
        match["name"]: match["value"].lstrip("=").strip().strip("'\"").lower()
        for match in map(FORM.fullmatch, lines)
        if match and match["value"]
    }
    ours = "megatron" if megatron else "fsdp2"
    for name in STRATEGIES:
        if values.get(name, ours) != ours:
            return (
                f"{name}={values[name]} in training.verl: saves are written for {ours}, and the "
                "first one would fail: remove the override"
                + ("" if megatron else ", or set scale.megatron for Megatron-LM")
            )
    if entropy_target and values.get(BYPASS) in ("true", "1", "yes", "on"):
        return (
            f"{BYPASS}={values[BYPASS]} in training.verl: verl then measures no entropy before an "
            "update, which training.entropy_target needs: remove one of them"
        )
    return ""
