"""Synthetic problems: proposed and solved by a language model, then verified like all others.

The model is behind an OpenAI-compatible endpoint. Off by default.
"""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dagster as dg

from assets.partitions import DATA, OWNERS
from assets.tables import PROBLEM_COLUMNS, examples, funnel_figures, top_reasons
from assets.verified_problems import check_strength, stored_stage, verified_problems
from problems.cleaning.curation import faulty
from problems.production import is_production
from problems.schema import Problem, read_parquet, write_parquet
from problems.synthesis.endpoint import Endpoint
from problems.synthesis.replies import Replies
from problems.synthesis.synthesize import synthesize
from problems.verification import strength
from problems.verification.verification import verify
from resources.run_context import RunContext, StageContext, StageOutput, result

VERSION = 2  # of what is made from the same inputs


@dg.asset(
    code_version=str(VERSION),
    metadata=PROBLEM_COLUMNS,
    group_name=DATA,
    kinds={"python", "parquet"},
    owners=OWNERS[DATA],
    deps=[verified_problems],
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
            (folder / "removed.json").write_text("[]", encoding="utf-8")
            return (
                _synthesize(stage, read_parquet(verified.path / "problems.parquet"), folder)
                if config.on
                else StageOutput({"kept": 0, "off": True})
            )

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
            "datasets",
            "synthetic_problems",
            make,
            version=VERSION,
            inputs=inputs,
            config=artifact_config,
            seed=seed,
        )
        problems, funnel_stage = (
            read_parquet(artifact.path / "problems.parquet"),
            stored_stage(artifact.path, "synthetic"),
        )
        stage.report.say(
            f"{funnel_stage.went_out} of {funnel_stage.came_in} proposals kept"
            if config.on
            else "off: synthesis.endpoint is not set"
        )
    facts = artifact.manifest.facts
    metadata = {
        "dagster/row_count": len(problems),
        **funnel_figures([funnel_stage]),
        "top_reasons": top_reasons(funnel_stage)
        if config.on
        else "off: set synthesis.endpoint, synthesis.model and synthesis.problems",
        "examples": dg.MetadataValue.md(examples(problems)),
        "facts": dg.MetadataValue.json(facts),
    }
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
    removed = [asdict(row) for row in (*synthesized.refused, *verification.removed)]
    (folder / "removed.json").write_text(json.dumps(removed, indent=1), encoding="utf-8")
    facts: dict[str, Any] = {"not_seeds": dict(Counter(sorted(poor.values())))} if poor else {}
    facts |= {
        "questions": synthesized.questions,
        "tokens": synthesized.tokens,
        "replies": replies.content_hash,
    }
    return StageOutput(
        {"proposals": synthesized.stage.came_in, "kept": len(verification.problems), **facts},
        isolation=", ".join(verification.isolation),
    )
