"""Verified problems: every reference solution passes its tests in the sandbox, an answer that does nothing fails them."""

import json
from dataclasses import asdict
from pathlib import Path

import dagster as dg

from assets.partitions import DATA, OWNERS
from assets.pictures import chart
from assets.raw_problems import raw_problems
from assets.tables import examples, top_reasons
from problems.charts import funnel_chart
from problems.choice import chosen, input_of
from problems.funnel import Removed, Stage, funnel
from problems.limits import read as read_measured
from problems.limits import savings, with_limits
from problems.limits import write as write_measured
from problems.schema import read_parquet, write_parquet
from problems.verification import verify
from resources.workshop import Made, Workshop, result


@dg.asset(group_name=DATA, kinds={"python", "parquet"}, owners=OWNERS[DATA], deps=[raw_problems])
def verified_problems(context: dg.AssetExecutionContext, workshop: Workshop) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Problems whose tests accept every reference solution and refuse an idle answer; verdicts are kept, so that none is asked for twice."""
    with workshop.bench(context) as bench:
        raw, choice = bench.store.require("datasets", "raw_problems"), chosen(workshop.home.path)
        inputs = {"raw_problems": raw.content_hash} | input_of(choice)

        def make(folder: Path) -> Made:
            problems = with_limits(read_parquet(raw.path / "problems.parquet"), choice)
            journal = workshop.home.path / "journals" / "verification.jsonl"
            with workshop.sandbox() as sandbox:
                verified = verify(problems, sandbox, journal, on_progress=bench.stage.progress.at)
            write_parquet(verified.kept, folder / "problems.parquet")
            write_measured(verified.measured, folder)
            (folder / "removed.json").write_text(json.dumps([asdict(r) for r in verified.removed], indent=1), encoding="utf-8")
            facts = {"came_in": len(problems), "kept": len(verified.kept), "removed": len(verified.removed)} | (
                {"learned_limits": len(choice)} if choice else {}
            )
            return Made(facts, isolation=", ".join(verified.isolation))

        made = bench.made("datasets", "verified_problems", make, version=3, inputs=inputs, config={})
        kept, stage = read_parquet(made.path / "problems.parquet"), removed_at(made.path, "verified")
        bench.stage.say(f"{stage.went_out} of {stage.came_in} kept")
    metadata = {
        "dagster/row_count": len(kept),
        "funnel": dg.MetadataValue.md(f"{chart('funnel', funnel_chart([stage]))}\n\n{funnel([stage])}"),
        "top_reasons": top_reasons(stage),
        "examples": dg.MetadataValue.md(examples(kept)),
        "isolation": made.manifest.isolation or "",
        "learned_limits": dg.MetadataValue.md(savings(kept, read_measured(made.path))),
    }
    return result(made, metadata)


def removed_at(folder: Path, name: str) -> Stage:
    """The funnel's stage that was written beside the problems kept."""
    removed = tuple(Removed(**row) for row in json.loads((folder / "removed.json").read_text(encoding="utf-8")))
    kept = len(read_parquet(folder / "problems.parquet"))
    return Stage(name, kept + len(removed), kept, removed)
