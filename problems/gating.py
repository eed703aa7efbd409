"""What is for evaluation only: which tasks are gated.

MBPP is gated by task over all releases: its test tasks 11 to 510, and every id that is in a release of MBPP+ or in sanitized MBPP, whatever its split
(108 of the 378 tasks of MBPP+ v0.2.0 lie in MBPP's train range). MBPP+ v0.1.0 had 399 tasks; its list is not at hand, but it was taken from sanitized
MBPP, so all 427 sanitized ids are gated, which is more than needed by a few. `gated_ids.json` holds the lists.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

IDS = Path(__file__).with_name("gated_ids.json")
MBPP_TEST = range(11, 511)


@cache
def gated_mbpp() -> frozenset[int]:
    """All gated task numbers of MBPP."""
    releases = json.loads(IDS.read_text(encoding="utf-8"))["mbpp"]
    return frozenset(MBPP_TEST).union(*releases.values())


def is_gated_mbpp(task: int) -> bool:
    return task in gated_mbpp()
