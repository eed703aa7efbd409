"""`ratchet data clean`: verify and clean files of problems at any URL in parts, on this machine or
on a Ray cluster.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from cli.display.screen import print_markdown
from evaluation.benchmarks.registry import check_guards
from pipelines.watch.text import print_text
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
    """Verify and clean the source into the target folder. Raises ProblemError."""
    profile, start = settings.profile, time.monotonic()
    gated_problems = [
        replace(problem, gated=True) for path in gated for problem in read_parquet(path)
    ]
    sources = {problem.source for problem in gated_problems}
    names = [benchmark.name for benchmark in profile.evaluation.benchmarks]
    for name in check_guards(names, profile.policy.benchmark, sources):
        console.print(
            f"warning: the data is not compared with {name}: give --gated", style="yellow"
        )
    rules = Rules(profile.verification, profile.curation, profile.sandbox)
    if ray:
        cluster = RayData(ray)
        result = clean(
            source,
            target,
            cluster,
            replace(rules, sandbox=replace(profile.sandbox, workers=1, backend="local")),
            gated_problems,
        )
        where = f"on {len(cluster.nodes)} nodes"
    else:
        result, where = clean(source, target, parallel_map, rules, gated_problems), "here"
    print_markdown(console, funnel(result.stages))
    print_text(
        console,
        f"{result.stages[-1].went_out} problems in {target}, hash {result.content_hash}, "
        f"{time.monotonic() - start:.0f} s {where}\n"
        f"Train on it: ratchet train --set dataset={target}",
    )
    return 0
