"""`ratchet data clean`: verify and curate parquet in parts at any URL, on this machine or on a Ray
cluster.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from problems.dataset.partitioned import Rules, clean
from problems.funnel import funnel
from problems.parallel import parallel_map
from problems.schema import read_parquet
from resources.ray.data import RayData
from resources.settings import Settings


def data_clean(
    source: str,
    target: str,
    gated: list[Path],
    ray: str,
    settings: Settings,
    console: Console,
) -> int:
    """0; what went wrong is raised by name."""
    profile, began = settings.profile, time.monotonic()
    guards = [replace(problem, gated=True) for path in gated for problem in read_parquet(path)]
    rules = Rules(profile.verification, profile.curation, profile.sandbox)
    if ray:
        cluster = RayData(ray)
        done = clean(
            source,
            target,
            cluster,
            replace(rules, sandbox=replace(profile.sandbox, workers=1, backend="local")),
            guards,
        )
        where = f"on {len(cluster.nodes)} nodes"
    else:
        done, where = clean(source, target, parallel_map, rules, guards), "here"
    console.print(Markdown(funnel(done.stages)))
    console.print(
        f"{done.stages[-1].went_out} problems in {target}/problems, content "
        f"{done.content_hash}, {time.monotonic() - began:.0f} s {where}"
    )
    return 0
