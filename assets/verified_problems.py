"""Verified problems: their tests accept each reference solution and reject broken ones.

In: raw problems. Out: the problems that pass verification in the sandbox, the strength of their
tests, and the removed problems with reasons.
"""

import json
from dataclasses import asdict
from pathlib import Path

import dagster as dg

from assets.markdown import markdown
from assets.partitions import DATA, OWNERS
from assets.pictures import chart
from assets.raw_problems import raw_problems
from assets.tables import PROBLEM_COLUMNS, examples, funnel_figures, top_reasons
from problems.dataset.charts import funnel_chart
from problems.funnel import Removed, Stage
from problems.schema import read_parquet, write_parquet
from problems.verification import strength
from problems.verification.chosen_limits import input_of, read_choice
from problems.verification.limits import read as read_measured
from problems.verification.limits import savings, with_limits
from problems.verification.limits import write as write_measured
from problems.verification.verification import verify
from problems.verification.verification_batch import needs_strength
from resources.run_context import RunContext, StageOutput, result

VERSION = 6  # of what is made from the same inputs


@dg.asset(
    code_version=str(VERSION),
    metadata=PROBLEM_COLUMNS,
    group_name=DATA,
    kinds={"python", "parquet"},
    owners=OWNERS[DATA],
    deps=[raw_problems],
)
def verified_problems(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Problems whose tests accept every reference solution and reject broken ones."""
    with run_context.stage(context) as stage:
        raw = stage.store.require("datasets", "raw_problems")
        limits = read_choice(run_context.home.path)
        config = stage.profile.verification
        inputs = {"raw_problems": raw.content_hash} | input_of(limits)

        def make(folder: Path) -> StageOutput:
            problems = with_limits(read_parquet(raw.path / "problems.parquet"), limits)
            journal = run_context.home.path / "journals" / "verification.jsonl"
            with run_context.new_sandbox() as sandbox:
                verified = verify(
                    problems, sandbox, journal, config, on_progress=stage.report.progress.at
                )
            write_parquet(verified.problems, folder / "problems.parquet")
            strength.write(verified.strength, folder)
            write_measured(verified.measured, folder)
            (folder / "removed.json").write_text(
                json.dumps([asdict(r) for r in verified.removed], indent=1), encoding="utf-8"
            )
            facts = {
                "came_in": len(problems),
                "kept": len(verified.problems),
                "removed": len(verified.removed),
            } | ({"learned_limits": len(limits)} if limits else {})
            return StageOutput(facts, isolation=", ".join(verified.isolation))

        artifact = stage.artifact(
            "datasets",
            "verified_problems",
            make,
            version=VERSION,
            inputs=inputs,
            config=config.model_dump(mode="json"),
        )
        problems = read_parquet(artifact.path / "problems.parquet")
        funnel_stage = stored_stage(artifact.path, "verified")
        rows = strength.read(artifact.path)
        stage.report.say(f"{funnel_stage.went_out} of {funnel_stage.came_in} kept")
    metadata = {
        "dagster/row_count": len(problems),
        **funnel_figures([funnel_stage], chart("funnel", funnel_chart([funnel_stage]))),
        "top_reasons": dg.MetadataValue.md(top_reasons(funnel_stage)),
        "examples": dg.MetadataValue.md(examples(problems)),
        "strength": dg.MetadataValue.md(markdown(strength.HEAD, strength.by_source(rows))),
        "weakest": dg.MetadataValue.md(markdown(strength.WEAKEST, strength.weakest(rows))),
        "doubtful": dg.MetadataValue.md(markdown(strength.DOUBTFUL, strength.doubtful(rows))),
        "isolation": artifact.manifest.isolation or "",
        "learned_limits": dg.MetadataValue.md(savings(problems, read_measured(artifact.path))),
    }
    return result(artifact, metadata)


@dg.asset_check(asset=verified_problems, blocking=True)
def verified_tests_are_strong(run_context: RunContext) -> dg.AssetCheckResult:
    """The tests of each trainable problem reject the profile's share of broken solutions."""
    return check_strength(run_context, "verified_problems")


def check_strength(run_context: RunContext, name: str) -> dg.AssetCheckResult:
    """Check the stored dataset: no problem has weak tests, or tests of unknown strength."""
    folder = run_context.store.require("datasets", name).path
    threshold = run_context.profile.verification.threshold
    strengths = {row.problem_id: row for row in strength.read(folder)}
    trainable = [
        problem.problem_id
        for problem in read_parquet(folder / "problems.parquet")
        if needs_strength(problem)
    ]
    unmeasured = [problem_id for problem_id in trainable if problem_id not in strengths]
    weak = [
        strengths[problem_id]
        for problem_id in trainable
        if problem_id in strengths and strengths[problem_id].weak(threshold)
    ]
    description = (
        f"{len(weak)} problems below {threshold:.0%}, {len(unmeasured)} unmeasured in {folder}: "
        "remove this folder and run again"
    )
    return dg.AssetCheckResult(
        passed=not weak and not unmeasured,
        metadata={
            "count": len(weak) + len(unmeasured),
            "weak": dg.MetadataValue.md(markdown(strength.WEAKEST, strength.weakest(weak, 20))),
            "unmeasured": dg.MetadataValue.json(unmeasured[:20]),
        },
        description=description if weak or unmeasured else None,
    )


def stored_stage(folder: Path, name: str) -> Stage:
    """Return the stage of the funnel that was stored with the dataset."""
    removed = tuple(
        Removed(**row) for row in json.loads((folder / "removed.json").read_text(encoding="utf-8"))
    )
    count = len(read_parquet(folder / "problems.parquet"))
    return Stage(name, count + len(removed), count, removed)
