"""Augmented problems: verified variants of verified problems.

The outputs in their tests are computed by their reference solutions in the sandbox.
"""

from pathlib import Path

import dagster as dg

from assets.markdown import markdown
from assets.stages import STAGES, asset_of
from assets.tables import PROBLEM_COLUMNS, dataset_figures, removing_stage
from assets.verified_problems import check_strength
from problems.augmentation.variants import write_variants
from problems.stored import stored_problems
from resources.run_context import RunContext, StageOutput, result


@dg.asset(
    **asset_of("augmented_problems"),
    metadata=PROBLEM_COLUMNS,
    kinds={"python", "parquet"},
)
def augmented_problems(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Variants of verified problems: with another number, inverted, or composed of two. Rejected
    attempts are stored with the reason.
    """
    with run_context.stage(context) as stage:
        verified = stage.store.require("datasets", "verified_problems")
        profile = stage.profile

        def make(folder: Path) -> StageOutput:
            with run_context.new_sandbox() as sandbox:
                facts, isolation = write_variants(
                    stored_problems(verified.path),
                    folder,
                    base=profile.base,
                    augmentation=profile.augmentation,
                    curation=profile.curation,
                    verification=profile.verification,
                    seed=profile.seed,
                    sandbox=sandbox,
                    journal=run_context.home.path / "journals" / "verification.jsonl",
                    on_progress=stage.report.progress.at,
                )
            return StageOutput(facts, isolation=", ".join(isolation))

        config = profile.augmentation.model_dump(mode="json") | {
            "verification": profile.verification.model_dump(mode="json"),
            "curation": profile.curation.model_dump(mode="json", exclude={"processes"}),
            "base": profile.base,
        }
        artifact = stage.artifact(
            STAGES["augmented_problems"],
            make,
            inputs={"verified_problems": verified.content_hash},
            config=config,
            seed=profile.seed,
        )
        funnel_stage = removing_stage(artifact)
        stage.report.say(f"{funnel_stage.went_out} of {funnel_stage.came_in} attempts kept")
    metadata = {
        **dataset_figures(artifact, [funnel_stage]),
        "not_parents": dg.MetadataValue.md(
            markdown(
                ("reason for no variants", "problems"),
                list(artifact.manifest.facts["not_parents"].items()),
            )
        ),
    }
    return result(artifact, metadata)


@dg.asset_check(asset=augmented_problems, blocking=True)
def augmented_tests_are_strong(run_context: RunContext) -> dg.AssetCheckResult:
    """Augmented problems pass the same check of test strength as verified ones."""
    return check_strength(run_context, "augmented_problems")
