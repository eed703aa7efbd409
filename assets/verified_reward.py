"""Check that a reward may train.

The exploit battery's result is stored by the reward's hash, and recorded in each checkpoint that is
trained with the reward.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from artifacts.atomic import write_atomic
from artifacts.integrity import reading, seal, unseal
from artifacts.manifest import Manifest
from resources.home import Home
from rewards.battery.battery import BatteryResult
from rewards.composite import reward_hash
from rewards.config import RewardConfig

CONTROL = "random: a control, not tried"
OWN_MANAGER = "unverified: a reward manager of one's own, which the battery cannot try"


class UnverifiedReward(RuntimeError):
    """The reward has not passed the battery, and `unverified` is not set."""


def store_result(home: Home, config: RewardConfig, result: BatteryResult) -> None:
    """Store a result in `batteries/<hash of the reward>.json`, next to the runs."""
    path = home.batteries / f"{reward_hash(config)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(
        path,
        seal(
            json.dumps(
                {
                    "passed": result.passed,
                    "hash": result.hash,
                    "rows": [asdict(row) for row in result.rows],
                },
                indent=1,
            )
        ),
    )


def stored_result(home: Home, config: RewardConfig) -> dict[str, Any] | None:
    """Return this reward's stored result, or None if the battery has not run on it.

    Raises CorruptArtifact for a result that was changed.
    """
    path = home.batteries / f"{reward_hash(config)}.json"
    if not path.exists():
        return None
    fix = "delete it, and run `ratchet reward verify`"
    with reading(path, fix):
        return unseal(path.read_text(encoding="utf-8"), path, fix)


def battery_stamp(home: Home, config: RewardConfig) -> str:
    """Return the reward's entry in a passport: the battery's hash.

    `unverified` precedes the hash if the battery did not pass or did not run; this raises
    UnverifiedReward unless the config says `unverified`.
    """
    if config.kind == "random" and not config.file:
        return CONTROL
    result = stored_result(home, config) or {}
    if result.get("passed"):
        return str(result["hash"])
    if not config.unverified:
        failed = [row["name"] for row in result.get("rows", []) if not row["passed"]]
        reason = f"failed: {', '.join(failed[:3])}" if failed else "it was not run"
        raise UnverifiedReward(
            f"the reward has not passed the exploit battery ({reason}): run `ratchet reward "
            "verify`, or train with --unverified"
        )
    return f"unverified {result.get('hash', '')}".strip()


def battery_text(stamp: str) -> str:
    """Return a stamp as a sentence for a checkpoint's page."""
    if not stamp:
        return "not run"
    if stamp == CONTROL or stamp.startswith("unverified"):
        return stamp
    return f"the reward passed the exploit battery (hash {stamp[:12]})"


def unverified_by(manifest: Manifest) -> list[str]:
    """Return the trainings with an unverified reward, from this checkpoint back to its start."""
    return list(manifest.facts.get("unverified", []))
