"""Synthetic problems: proposed and solved by a language model, then verified like all others.

The model is behind an OpenAI-compatible endpoint. Off by default.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import dagster as dg

from assets.stages import STAGES, asset_of
from assets.tables import PROBLEM_COLUMNS, dataset_figures, removing_stage
from assets.verified_problems import check_strength
from problems.cleaning.curation import faulty
from problems.funnel import Stage, write_removed
from problems.production import is_production
from problems.schema import Problem, write_parquet
from problems.stored import stored_problems
from problems.synthesis.endpoint import Endpoint
from problems.synthesis.replies import Replies
from problems.synthesis.synthesize import synthesize
from problems.verification import strength
from problems.verification.verification import verify
from resources.run_context import RunContext, StageContext, StageOutput, result


@dg.asset(
    **asset_of("synthetic_problems"),
    metadata=PROBLEM_COLUMNS,
    kinds={"python", "parquet"},
)
def synthetic_problems(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Problems on whose outputs several independent completions agree. Rejected proposals are
    stored with the reason. Empty while `synthesis` is off.
    """
    with run_context.stage(context) as stage:
        verified = stage.store.require("datasets", "verified_problems")
        config = stage.profile.synthesis

        def make(folder: Path) -> StageOutput:
            write_parquet([], folder / "problems.parquet")
            strength.write([], folder)
            write_removed([], folder)
            if config.on:
                return _synthesize(stage, stored_problems(verified.path), folder)
            return StageOutput({"kept": 0, "off": True} | Stage("synthetic", 0, 0).facts)

        inputs = {"verified_problems": verified.content_hash} if config.on else {}
        profile = stage.profile
        judging_config = {
            "verification": profile.verification.model_dump(mode="json"),
            "curation": profile.curation.model_dump(mode="json", exclude={"processes"}),
        }
        artifact_config = (
            config.model_dump(mode="json", exclude={"timeout_s"}) | judging_config
            if config.on
            else {}
        )
        seed = stage.profile.seed if config.on else None
        artifact = stage.artifact(
            STAGES["synthetic_problems"],
            make,
            inputs=inputs,
            config=artifact_config,
            seed=seed,
        )
        funnel_stage = removing_stage(artifact)
        stage.report.say(
            f"{funnel_stage.went_out} of {funnel_stage.came_in} proposals kept"
            if config.on
            else "off: synthesis.endpoint is not set"
        )
    facts = artifact.manifest.facts
    metadata = dataset_figures(artifact, [funnel_stage]) | {"facts": dg.MetadataValue.json(facts)}
    if not config.on:
        metadata["top_reasons"] = "off: set synthesis.endpoint, synthesis.model, synthesis.problems"
    return result(artifact, metadata)


@dg.asset_check(asset=synthetic_problems, blocking=True)
def synthetic_tests_are_strong(run_context: RunContext) -> dg.AssetCheckResult:
    """Synthetic problems pass the same check of test strength as verified ones."""
    return check_strength(run_context, "synthetic_problems")


def _synthesize(stage: StageContext, problems: list[Problem], folder: Path) -> StageOutput:
    """Propose, solve and verify problems, and fill the folder.

    Replies are stored in a journal before they are used, so that a resumed run repeats no request.
    """
    config, journals = stage.profile.synthesis, stage.run_context.home.path / "journals"
    # Problems with secrets must not be sent to an endpoint.
    poor = faulty(
        (one for one in problems if one.split == "train" and not one.gated), stage.profile.curation
    )
    fit = [one for one in problems if one.problem_id not in poor and not is_production(one)]
    with (
        Endpoint(config.endpoint, config.timeout_s) as endpoint,
        Replies(journals / "synthesis.jsonl", endpoint) as replies,
        stage.run_context.new_sandbox() as sandbox,
    ):
        synthesized = synthesize(
            fit, config, stage.profile.seed, replies, sandbox, stage.report.progress.at
        )
        verification = verify(
            synthesized.problems,
            sandbox,
            journals / "verification.jsonl",
            stage.profile.verification,
        )
    write_parquet(verification.problems, folder / "problems.parquet")
    strength.write(verification.strength, folder)
    removed, kept = (*synthesized.refused, *verification.removed), len(verification.problems)
    write_removed(removed, folder)
    came_in = synthesized.stage.came_in
    facts: dict[str, Any] = {"not_seeds": dict(Counter(sorted(poor.values())))} if poor else {}
    facts |= {
        "questions": synthesized.questions,
        "tokens": synthesized.tokens,
        "replies": replies.content_hash,
    }
    return StageOutput(
        {"proposals": came_in, "kept": kept, **facts}
        | Stage("synthetic", came_in, kept, removed).facts,
        isolation=", ".join(verification.isolation),
    )
