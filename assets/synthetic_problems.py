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
from resources.run_context import Bench, Made, Workshop, result


@dg.asset(
    group_name=DATA, kinds={"python", "parquet"}, owners=OWNERS[DATA], deps=[verified_problems]
)
def synthetic_problems(
    context: dg.AssetExecutionContext, workshop: Workshop
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Problems whose outputs several independent completions agree on; each rejected proposal keeps
    its reason. Empty while `synthesis` is off.
    """
    with workshop.bench(context) as bench:
        verified, config = (
            bench.store.require("datasets", "verified_problems"),
            bench.profile.synthesis,
        )

        def make(folder: Path) -> Made:
            write_parquet([], folder / "problems.parquet")
            strength.write([], folder)
            (folder / "removed.json").write_text("[]", encoding="utf-8")
            return (
                _asked(bench, read_parquet(verified.path / "problems.parquet"), folder)
                if config.on
                else Made({"kept": 0, "off": True})
            )

        inputs = {"verified_problems": verified.content_hash} if config.on else {}
        profile = bench.profile
        judging = {
            "verification": profile.verification.model_dump(mode="json"),
            "curation": profile.curation.model_dump(mode="json", exclude={"processes"}),
        }
        decides = (
            config.model_dump(mode="json", exclude={"timeout_s"}) | judging if config.on else {}
        )
        seed = bench.profile.seed if config.on else None
        made = bench.made(
            "datasets",
            "synthetic_problems",
            make,
            version=2,
            inputs=inputs,
            config=decides,
            seed=seed,
        )
        kept, stage = (
            read_parquet(made.path / "problems.parquet"),
            removed_at(made.path, "synthetic"),
        )
        bench.stage.say(
            f"{stage.went_out} of {stage.came_in} proposals kept"
            if config.on
            else "off: no endpoint is named"
        )
    facts = made.manifest.facts
    metadata = {
        "dagster/row_count": len(kept),
        "funnel": dg.MetadataValue.md(funnel([stage])),
        "top_reasons": top_reasons(stage)
        if config.on
        else "off: set synthesis.endpoint, synthesis.model and synthesis.problems",
        "examples": dg.MetadataValue.md(examples(kept)),
        "asked": dg.MetadataValue.json(facts),
    }
    return result(made, metadata)


@dg.asset_check(asset=synthetic_problems, blocking=True)
def synthetic_tests_are_strong(workshop: Workshop) -> dg.AssetCheckResult:
    """Synthetic problems pass the same check of test strength as verified ones."""
    return strong(workshop, "synthetic_problems")


def _asked(bench: Bench, problems: list[Problem], folder: Path) -> Made:
    """Append replies to a journal before they are used: a killed run resumes and repeats no
    request.
    """
    config, journals = bench.profile.synthesis, bench.workshop.home.path / "journals"
    # Problems with secrets must not be sent to an endpoint.
    poor = faulty(
        (one for one in problems if one.split == "train" and not one.gated), bench.profile.curation
    )
    fit = [one for one in problems if one.problem_id not in poor]
    with (
        Endpoint(config.endpoint, config.timeout_s) as endpoint,
        Replies(journals / "synthesis.jsonl", endpoint) as replies,
        bench.workshop.sandbox() as sandbox,
    ):
        synthesized = synthesize(
            fit, config, bench.profile.seed, replies, sandbox, bench.stage.progress.at
        )
        tried = verify(
            synthesized.made, sandbox, journals / "verification.jsonl", bench.profile.verification
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
