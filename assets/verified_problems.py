"""Verified problems: their tests accept each reference solution and reject broken ones.

In: raw problems. Out: the problems that pass verification in the sandbox, the strength of their
tests, and the removed problems with reasons.
"""

from pathlib import Path

import dagster as dg

from artifacts.charts import image
from assets.markdown import markdown
from assets.stages import STAGES, asset_of
from assets.tables import PROBLEM_COLUMNS, dataset_figures, removing_stage
from problems.dataset.charts import funnel_chart
from problems.funnel import write_removed
from problems.schema import write_parquet
from problems.stored import stored_problems
from problems.verification import strength
from problems.verification.chosen_limits import input_of, read_choice
from problems.verification.limits import read as read_measured
from problems.verification.limits import savings, with_limits
from problems.verification.limits import write as write_measured
from problems.verification.problem_check import needs_strength
from problems.verification.verification import verify
from resources.run_context import RunContext, StageOutput, result
from sandbox.backends.local import folders_of


@dg.asset(
    **asset_of("verified_problems"),
    metadata=PROBLEM_COLUMNS,
    kinds={"python", "parquet"},
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
            problems = with_limits(stored_problems(raw.path), limits)
            journal = run_context.home.path / "journals" / "verification.jsonl"
            with run_context.new_sandbox() as sandbox:
                verified = verify(
                    problems, sandbox, journal, config, on_progress=stage.report.progress.at
                )
            write_parquet(verified.problems, folder / "problems.parquet")
            strength.write(verified.strength, folder)
            write_measured(verified.measured, folder)
            write_removed(verified.removed, folder)
            facts = {
                "came_in": len(problems),
                "kept": len(verified.problems),
                "removed": len(verified.removed),
                **({"learned_limits": len(limits)} if limits else {}),
                **verified.stage.facts,
            }
            return StageOutput(facts, isolation=", ".join(verified.isolation))

        # After the installation of a package, the problems that need it are measured.
        needed = {each for row in stored_problems(raw.path) for each in row.packages}
        present = sorted(needed & folders_of(stage.profile.sandbox.packages).keys())
        packages = {"packages": present} if present else {}
        artifact = stage.artifact(
            STAGES["verified_problems"],
            make,
            inputs=inputs,
            config=config.model_dump(mode="json") | packages,
        )
        funnel_stage = removing_stage(artifact)
        rows, problems = strength.read(artifact.path), stored_problems(artifact.path)
        stage.report.say(f"{funnel_stage.went_out} of {funnel_stage.came_in} kept")
    metadata = {
        **dataset_figures(artifact, [funnel_stage], image("funnel", funnel_chart([funnel_stage]))),
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
        problem.problem_id for problem in stored_problems(folder) if needs_strength(problem)
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
