"""Verified problems: every reference solution passes its tests in the sandbox; empty and broken
solutions fail them.
"""

import json
from dataclasses import asdict
from pathlib import Path

import dagster as dg

from assets.partitions import DATA, OWNERS
from assets.pictures import chart
from assets.raw_problems import raw_problems
from assets.tables import examples, markdown, top_reasons
from problems.dataset.charts import funnel_chart
from problems.funnel import Removed, Stage, funnel
from problems.schema import read_parquet, write_parquet
from problems.verification import strength
from problems.verification.chosen_limits import input_of, read_choice
from problems.verification.limits import read as read_measured
from problems.verification.limits import savings, with_limits
from problems.verification.limits import write as write_measured
from problems.verification.verification import verify
from problems.verification.verification_batch import needs_strength
from resources.run_context import Made, RunContext, result


@dg.asset(group_name=DATA, kinds={"python", "parquet"}, owners=OWNERS[DATA], deps=[raw_problems])
def verified_problems(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Problems whose tests accept every reference solution and refuse broken ones; verdicts are
    kept, so none is computed twice.
    """
    with run_context.stage(context) as stage:
        raw, choice = (
            stage.store.require("datasets", "raw_problems"),
            read_choice(run_context.home.path),
        )
        config = stage.profile.verification
        inputs = {"raw_problems": raw.content_hash} | input_of(choice)

        def make(folder: Path) -> Made:
            problems = with_limits(read_parquet(raw.path / "problems.parquet"), choice)
            journal = run_context.home.path / "journals" / "verification.jsonl"
            with run_context.sandbox() as sandbox:
                verified = verify(
                    problems, sandbox, journal, config, on_progress=stage.report.progress.at
                )
            write_parquet(verified.kept, folder / "problems.parquet")
            strength.write(verified.strength, folder)
            write_measured(verified.measured, folder)
            (folder / "removed.json").write_text(
                json.dumps([asdict(r) for r in verified.removed], indent=1), encoding="utf-8"
            )
            facts = {
                "came_in": len(problems),
                "kept": len(verified.kept),
                "removed": len(verified.removed),
            } | ({"learned_limits": len(choice)} if choice else {})
            return Made(facts, isolation=", ".join(verified.isolation))

        made = stage.made(
            "datasets",
            "verified_problems",
            make,
            version=6,
            inputs=inputs,
            config=config.model_dump(mode="json"),
        )
        kept, funnel_stage = (
            read_parquet(made.path / "problems.parquet"),
            removed_at(made.path, "verified"),
        )
        rows = strength.read(made.path)
        stage.report.say(f"{funnel_stage.went_out} of {funnel_stage.came_in} kept")
    metadata = {
        "dagster/row_count": len(kept),
        "funnel": dg.MetadataValue.md(
            f"{chart('funnel', funnel_chart([funnel_stage]))}\n\n{funnel([funnel_stage])}"
        ),
        "top_reasons": dg.MetadataValue.md(top_reasons(funnel_stage)),
        "examples": dg.MetadataValue.md(examples(kept)),
        "strength": dg.MetadataValue.md(markdown(strength.HEAD, strength.by_source(rows))),
        "weakest": dg.MetadataValue.md(markdown(strength.WEAKEST, strength.weakest(rows))),
        "isolation": made.manifest.isolation or "",
        "learned_limits": dg.MetadataValue.md(savings(kept, read_measured(made.path))),
    }
    return result(made, metadata)


@dg.asset_check(asset=verified_problems, blocking=True)
def verified_tests_are_strong(run_context: RunContext) -> dg.AssetCheckResult:
    """Tests of trainable problems refuse as many broken solutions as the profile demands."""
    return strong(run_context, "verified_problems")


def strong(run_context: RunContext, name: str) -> dg.AssetCheckResult:
    """Check the stored dataset: no problem has weak tests, or tests of unknown strength."""
    folder, threshold = (
        run_context.store.require("datasets", name).path,
        run_context.profile.verification.threshold,
    )
    tried = {row.problem_id: row for row in strength.read(folder)}
    trainable = [
        problem.problem_id
        for problem in read_parquet(folder / "problems.parquet")
        if needs_strength(problem)
    ]
    untried = [problem_id for problem_id in trainable if problem_id not in tried]
    weak = [
        tried[problem_id]
        for problem_id in trainable
        if problem_id in tried and tried[problem_id].weak(threshold)
    ]
    mend = (
        f"{len(weak)} weaker than {threshold:.0%}, {len(untried)} untried: remove the dataset's "
        "folder, it is made again"
    )
    return dg.AssetCheckResult(
        passed=not weak and not untried,
        metadata={
            "count": len(weak) + len(untried),
            "weak": dg.MetadataValue.md(markdown(strength.WEAKEST, strength.weakest(weak, 20))),
            "untried": dg.MetadataValue.json(untried[:20]),
        },
        description=mend if weak or untried else None,
    )


def removed_at(folder: Path, name: str) -> Stage:
    """Return the stage of the funnel that was stored with the dataset."""
    removed = tuple(
        Removed(**row) for row in json.loads((folder / "removed.json").read_text(encoding="utf-8"))
    )
    kept = len(read_parquet(folder / "problems.parquet"))
    return Stage(name, kept + len(removed), kept, removed)
