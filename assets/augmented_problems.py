"""Augmented problems: variants of verified ones, with outputs computed by their references in the
sandbox; verified too.
"""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import dagster as dg

from assets.partitions import DATA, OWNERS
from assets.tables import examples, markdown, top_reasons
from assets.verified_problems import check_strength, stored_stage, verified_problems
from problems.augmentation.augment import augment
from problems.augmentation.draft import reason_not_parent
from problems.cleaning.curation import faulty
from problems.dataset.trainable import untrained
from problems.funnel import funnel
from problems.schema import read_parquet, write_parquet
from problems.verification import strength
from problems.verification.verification import verify
from resources.run_context import RunContext, StageOutput, result


@dg.asset(
    group_name=DATA, kinds={"python", "parquet"}, owners=OWNERS[DATA], deps=[verified_problems]
)
def augmented_problems(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Variants of verified problems: renamed, reworded, with another number, inverted, or composed
    of two. Rejected attempts are stored with the reason.
    """
    with run_context.stage(context) as stage:
        verified, config = (
            stage.store.require("datasets", "verified_problems"),
            stage.profile.augmentation,
        )
        verification_config, base, curation = (
            stage.profile.verification,
            stage.profile.base,
            stage.profile.curation,
        )

        def make(folder: Path) -> StageOutput:
            journal, problems = (
                run_context.home.path / "journals" / "verification.jsonl",
                read_parquet(verified.path / "problems.parquet"),
            )
            # Variants of these would not be trained on either.
            untrainable = untrained(problems, base)
            poor = faulty(
                (
                    one
                    for one in problems
                    if one.problem_id not in untrainable and not reason_not_parent(one)
                ),
                curation,
            )
            with run_context.sandbox() as sandbox:
                fit = [one for one in problems if one.problem_id not in untrainable | poor.keys()]
                augmented = augment(fit, config, stage.profile.seed, sandbox)
                verification = verify(
                    augmented.problems,
                    sandbox,
                    journal,
                    verification_config,
                    on_progress=stage.report.progress.at,
                )
            write_parquet(verification.problems, folder / "problems.parquet")
            strength.write(verification.strength, folder)
            removed = [asdict(row) for row in (*augmented.refused, *verification.removed)]
            (folder / "removed.json").write_text(json.dumps(removed, indent=1), encoding="utf-8")
            not_parents = (
                Counter(augmented.not_parents)
                + Counter(poor.values())
                + Counter({"not trained on": len(untrainable)})
            )
            facts = {
                "attempts": augmented.stage.came_in,
                "kept": len(verification.problems),
                "not_parents": dict(sorted(not_parents.items())),
            }
            return StageOutput(facts, isolation=", ".join(verification.isolation))

        judging_config = {
            "verification": verification_config.model_dump(mode="json"),
            "curation": curation.model_dump(mode="json", exclude={"processes"}),
        }
        artifact_config = config.model_dump(mode="json") | judging_config | {"base": base}
        inputs = {"verified_problems": verified.content_hash}
        artifact = stage.artifact(
            "datasets",
            "augmented_problems",
            make,
            version=5,
            inputs=inputs,
            config=artifact_config,
            seed=stage.profile.seed,
        )
        augmented_rows, funnel_stage = (
            read_parquet(artifact.path / "problems.parquet"),
            stored_stage(artifact.path, "augmented"),
        )
        stage.report.say(f"{funnel_stage.went_out} of {funnel_stage.came_in} attempts kept")
    metadata = {
        "dagster/row_count": len(augmented_rows),
        "funnel": dg.MetadataValue.md(funnel([funnel_stage])),
        "top_reasons": dg.MetadataValue.md(top_reasons(funnel_stage)),
        "not_parents": dg.MetadataValue.md(
            markdown(
                ("reason for no variants", "problems"),
                list(artifact.manifest.facts["not_parents"].items()),
            )
        ),
        "examples": dg.MetadataValue.md(examples(augmented_rows)),
    }
    return result(artifact, metadata)


@dg.asset_check(asset=augmented_problems, blocking=True)
def augmented_tests_are_strong(run_context: RunContext) -> dg.AssetCheckResult:
    """Augmented problems pass the same check of test strength as verified ones."""
    return check_strength(run_context, "augmented_problems")
