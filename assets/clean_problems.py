"""Clean problems: what training may see. In: verified problems. Out: no gated problem, nothing that overlaps one, no secret, nothing twice."""

import json
from dataclasses import asdict
from pathlib import Path

import dagster as dg

from assets.partitions import DATA, OWNERS
from assets.tables import by_split, examples
from assets.verified_problems import removed_at, verified_problems
from problems.curation import curate
from problems.funnel import funnel
from problems.gating import GatedIndex
from problems.schema import Problem, read_parquet, write_parquet
from problems.sources.compositional import part_of
from resources.workshop import Made, Workshop, result


@dg.asset(group_name=DATA, kinds={"python", "parquet"}, owners=OWNERS[DATA], deps=[verified_problems])
def clean_problems(context: dg.AssetExecutionContext, workshop: Workshop) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Verified problems less gated benchmarks, their likenesses, secrets and duplicates; every removed one keeps its reason."""
    with workshop.bench(context) as bench:
        raw, verified = (bench.store.require("datasets", name) for name in ("raw_problems", "verified_problems"))

        def make(folder: Path) -> Made:
            arrived = read_parquet(verified.path / "problems.parquet")
            gated = [problem for problem in read_parquet(raw.path / "problems.parquet") if problem.gated]  # also those that verification left out
            curated = curate(arrived, gated)
            write_parquet(curated.kept, folder / "problems.parquet")
            write_parquet(gated, folder / "gated.parquet")
            (folder / "removed.json").write_text(json.dumps([asdict(r) for r in curated.removed], indent=1), encoding="utf-8")
            (folder / "overlaps.json").write_text(json.dumps([asdict(o) for o in curated.overlaps], indent=1), encoding="utf-8")
            return Made({"came_in": len(arrived), "kept": len(curated.kept), "gated": len(gated), "overlaps": len(curated.overlaps)})

        inputs = {"raw_problems": raw.content_hash, "verified_problems": verified.content_hash}
        made = bench.made("datasets", "clean_problems", make, version=1, inputs=inputs, config={})
        kept = read_parquet(made.path / "problems.parquet")
        stages = [removed_at(verified.path, "verified"), removed_at(made.path, "clean")]
        bench.stage.say(f"{stages[1].went_out} of {stages[1].came_in} kept")
    metadata = {
        "dagster/row_count": len(kept),
        "funnel": dg.MetadataValue.md(funnel(stages)),
        "parts": dg.MetadataValue.md(by_split(kept)),
        "examples": dg.MetadataValue.md(examples(kept)),
    }
    return result(made, metadata)


@dg.asset_check(asset=clean_problems, blocking=True)
def no_gated_problem(workshop: Workshop) -> dg.AssetCheckResult:
    """Judges what lies on disk: no problem of a gated benchmark, and none that overlaps one."""
    folder = workshop.store.require("datasets", "clean_problems").path
    index = GatedIndex(read_parquet(folder / "gated.parquet"))
    found = [problem.problem_id for problem in read_parquet(folder / "problems.parquet") if problem.gated or any(index.overlaps(problem))]
    return dg.AssetCheckResult(passed=not found, metadata={"count": len(found), "problem_ids": dg.MetadataValue.json(found[:20])})


@dg.asset_check(asset=clean_problems, blocking=True)
def no_heldout_composition(workshop: Workshop) -> dg.AssetCheckResult:
    """No composition of the held-out part occurs in what is trained or tuned on."""
    problems = read_parquet(workshop.store.require("datasets", "clean_problems").path / "problems.parquet")
    found = [problem.problem_id for problem in problems if _is_heldout(problem)]
    return dg.AssetCheckResult(passed=not found, metadata={"count": len(found), "problem_ids": dg.MetadataValue.json(found[:20])})


def _is_heldout(problem: Problem) -> bool:
    return problem.source == "embedded" and part_of(problem.extra["composition"]) == "heldout"
