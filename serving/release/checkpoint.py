"""The running sum of a release, kept so that a process that starts again need not read all rows.

In: the sum and the observations that it is of. Out: a file beside the record. The record stays the
truth: a sum whose file was changed, or that does not agree with the rows, is not used.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from artifacts.atomic import write_atomic
from artifacts.code_hash import hash_modules
from artifacts.hashing import hash_data
from resources.registry.releases import Release
from serving.gateway.observations import Observations

logger = logging.getLogger(__name__)


def keep_sum(
    release: Release, observations: Observations, read: int, state: dict[str, Any]
) -> None:
    """Write the sum of a release's rows up to number `read`."""
    facts = _facts(release, observations, read)
    text = json.dumps({"facts": facts, "state": state})
    try:
        write_atomic(_path(observations), json.dumps({"hash": hash_data(text), "sum": text}))
    except OSError as error:  # a full disk: the next start reads all rows
        logger.warning("the sum of %s is not kept: %s", release.id, error)


def kept_sum(release: Release, observations: Observations) -> dict[str, Any] | None:
    """Return the kept sum of the release's first rows; None if it is missing or wrong."""
    try:
        kept = json.loads(_path(observations).read_text(encoding="utf-8"))
        if hash_data(kept["sum"]) != kept["hash"]:
            raise ValueError("its hash is another one")
        found = json.loads(kept["sum"])
        facts, state = found["facts"], found["state"]
        if facts["release"] == release.id and facts != _facts(release, observations, state["read"]):
            raise ValueError("it does not agree with the rows")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("all rows of %s are read again: its sum is not used: %s", release.id, error)
        return None
    own: dict[str, Any] | None = state if facts["release"] == release.id else None
    return own


def _facts(release: Release, observations: Observations, read: int) -> dict[str, Any]:
    """Return what the sum must agree with: the plan, and totals of the rows' columns."""
    opened = release.events[0].detail
    return {
        # Other code may make another sum of the same rows.
        "code": hash_modules(("serving.release.arms",), ("evaluation", "serving")),
        "release": release.id,
        "plan": hash_data({name: opened[name] for name in sorted(opened)}),
        "totals": observations.totals(release.id, read),
    }


def _path(observations: Observations) -> Path:
    return observations.path.with_suffix(".sum.json")
