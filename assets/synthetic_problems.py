"""Synthetic problems: proposed and solved by a language model behind an OpenAI-compatible endpoint,
verified like all others. Off by default.
"""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dagster as dg

from assets.partitions import DATA, OWNERS
from assets.tables import examples, top_reasons
from assets.verified_problems import removed_at, strong, verified_problems
from problems.cleaning.curation import faulty
from problems.funnel import funnel
from problems.schema import Problem, read_parquet, write_parquet
from problems.synthesis.endpoint import Endpoint
from problems.synthesis.replies import Replies
from problems.synthesis.synthesize import synthesize
from problems.verification import strength
from problems.verification.verification import verify
from resources.run_context import Made, RunContext, StageContext, result


@dg.asset(
    group_name=DATA, kinds={"python", "parquet"}, owners=OWNERS[DATA], deps=[verified_problems]
)
def synthetic_problems(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Problems whose outputs several independent completions agree on; each rejected proposal keeps
    its reason. Empty while `synthesis` is off.
    """
    with run_context.stage(context) as stage:
        verified, config = (
            stage.store.require("datasets", "verified_problems"),
            stage.profile.synthesis,
        )

        def make(folder: Path) -> Made:
            write_parquet([], folder / "problems.parquet")
            strength.write([], folder)
            (folder / "removed.json").write_text("[]", encoding="utf-8")
            return (
                _asked(stage, read_parquet(verified.path / "problems.parquet"), folder)
                if config.on
                else Made({"kept": 0, "off": True})
            )

        inputs = {"verified_problems": verified.content_hash} if config.on else {}
        profile = stage.profile
        judging = {
            "verification": profile.verification.model_dump(mode="json"),
            "curation": profile.curation.model_dump(mode="json", exclude={"processes"}),
        }
        decides = (
            config.model_dump(mode="json", exclude={"timeout_s"}) | judging if config.on else {}
        )
        seed = stage.profile.seed if config.on else None
        made = stage.made(
            "datasets",
            "synthetic_problems",
            make,
            version=2,
            inputs=inputs,
            config=decides,
            seed=seed,
        )
        kept, funnel_stage = (
            read_parquet(made.path / "problems.parquet"),
            removed_at(made.path, "synthetic"),
        )
        stage.report.say(
            f"{funnel_stage.went_out} of {funnel_stage.came_in} proposals kept"
            if config.on
            else "off: no endpoint is named"
        )
    facts = made.manifest.facts
    metadata = {
        "dagster/row_count": len(kept),
        "funnel": dg.MetadataValue.md(funnel([funnel_stage])),
        "top_reasons": top_reasons(funnel_stage)
        if config.on
        else "off: set synthesis.endpoint, synthesis.model and synthesis.problems",
        "examples": dg.MetadataValue.md(examples(kept)),
        "asked": dg.MetadataValue.json(facts),
    }
    return result(made, metadata)


@dg.asset_check(asset=synthetic_problems, blocking=True)
def synthetic_tests_are_strong(run_context: RunContext) -> dg.AssetCheckResult:
    """Synthetic problems pass the same check of test strength as verified ones."""
    return strong(run_context, "synthetic_problems")


def _asked(stage: StageContext, problems: list[Problem], folder: Path) -> Made:
    """Append replies to a journal before they are used: a killed run resumes and repeats no
    request.
    """
    config, journals = stage.profile.synthesis, stage.run_context.home.path / "journals"
    # Problems with secrets must not be sent to an endpoint.
    poor = faulty(
        (one for one in problems if one.split == "train" and not one.gated), stage.profile.curation
    )
    fit = [one for one in problems if one.problem_id not in poor]
    with (
        Endpoint(config.endpoint, config.timeout_s) as endpoint,
        Replies(journals / "synthesis.jsonl", endpoint) as replies,
        stage.run_context.sandbox() as sandbox,
    ):
        synthesized = synthesize(
            fit, config, stage.profile.seed, replies, sandbox, stage.report.progress.at
        )
        tried = verify(
            synthesized.made, sandbox, journals / "verification.jsonl", stage.profile.verification
        )
    write_parquet(tried.kept, folder / "problems.parquet")
    strength.write(tried.strength, folder)
    removed = [asdict(row) for row in (*synthesized.refused, *tried.removed)]
    (folder / "removed.json").write_text(json.dumps(removed, indent=1), encoding="utf-8")
    asked: dict[str, Any] = {"not_seeds": dict(Counter(sorted(poor.values())))} if poor else {}
    asked |= {
        "questions": synthesized.questions,
        "tokens": synthesized.tokens,
        "replies": replies.content_hash,
    }
    return Made(
        {"proposals": synthesized.stage.came_in, "kept": len(tried.kept), **asked},
        isolation=", ".join(tried.isolation),
    )
