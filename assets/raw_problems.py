"""Raw problems: every source in one schema.

In: a user's sources, and the shipped sources that the profile reads without being added.
Out: Parquet, and a list of rejected rows.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.hashing import hash_data, hash_file
from assets.markdown import markdown
from assets.partitions import sources
from assets.stages import DATA, OWNERS, STAGES, asset_of
from assets.tables import PROBLEM_COLUMNS, by_split, examples
from problems.catalogue import pinned_sources
from problems.dataset.splits import HELDOUT, VALIDATION, with_parts
from problems.embedded import compositional
from problems.funnel import Removed, Stage
from problems.reading.place import Place
from problems.reading.source import LoadedRows
from problems.schema import Problem, set_hash, write_parquet
from problems.sources import everyday, simple
from problems.sources.registry import load
from problems.stored import stored_problems
from problems.synthesis.settings import SOURCE as SYNTHETIC
from resources.config.profile import EMBEDDED
from resources.preflight import check_parts, check_sources
from resources.run_context import RunContext, StageContext, StageOutput, result

COLUMNS = ("row", "reason", "fix")  # of rejected.json

problem_sources = dg.AssetSpec(
    "problem_sources",
    description=(
        "The sources of problems, one partition each. raw_problems reads and reports them; "
        "`ratchet data add` adds one."
    ),
    group_name=DATA,
    kinds={"jsonl"},
    owners=OWNERS[DATA],
    partitions_def=sources,
)


@dg.asset(
    **asset_of("raw_problems"),
    metadata=PROBLEM_COLUMNS,
    kinds={"python", "parquet"},
)
def raw_problems(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Problems of all sources in one schema. Unreadable rows are listed with the reason."""
    with run_context.stage(context) as stage:
        added = pinned_sources(run_context.home.path)
        inputs = {name: place.content for name, place in added.items()}
        check_sources(run_context.home, stage.profile)

        def make(folder: Path) -> StageOutput:
            loaded = [*_shipped(stage, added), *_read(stage, added)]
            # A gate of the shipped family draws its own.
            parts = [VALIDATION] if stage.profile.reads_family else [VALIDATION, HELDOUT]
            problems = with_parts([each for one in loaded for each in one.problems], parts)
            check_parts(stage.profile, problems, "sources")
            write_parquet(problems, folder / "problems.parquet")
            rejected = [
                {"source": source.source}
                | {
                    key: _without_folder(text, added.get(source.source))
                    for key, text in zip(COLUMNS, astuple(row), strict=True)
                }
                for source in loaded
                for row in source.rejected
            ]
            (folder / "rejected.json").write_text(json.dumps(rejected, indent=1), encoding="utf-8")
            facts = {"problems": len(problems), "rejected": len(rejected)}
            reasons = ((Removed(f"{row['source']}/?", "row rejected")) for row in rejected)
            read = Stage("read", len(problems) + len(rejected), len(problems), tuple(reasons))
            return StageOutput(facts | read.facts | {"sources": _by_source(problems, rejected)})

        artifact = stage.artifact(
            STAGES["raw_problems"], make, inputs=inputs, config=_shipped_config(stage)
        )
        if stage.profile.reward.by:
            stage.profile.reward.check_tags(stored_problems(artifact.path), later=[SYNTHETIC])
        facts = artifact.manifest.facts
        rejected = json.loads((artifact.path / "rejected.json").read_text(encoding="utf-8"))
        stage.report.say(f"{facts['problems']} problems, {facts['rejected']} rows rejected")
    _report_sources(context, facts["sources"], added)
    rows = [tuple(row[key] for key in COLUMNS) for row in rejected[:20]]
    return result(
        artifact,
        {
            "dagster/row_count": facts["problems"],
            "parts": dg.MetadataValue.md(by_split(artifact.path)),
            "examples": dg.MetadataValue.md(examples(artifact.path)),
            "rejected": dg.MetadataValue.md(markdown(("row", "reason", "fix"), rows)),
        },
    )


@dg.asset_check(asset=raw_problems, blocking=True)
def schema_holds(run_context: RunContext) -> dg.AssetCheckResult:
    """The stored dataset conforms to the schema and is not empty, and each problem has tests."""
    problems = stored_problems(run_context.store.require("datasets", "raw_problems").path)
    untested = [problem.problem_id for problem in problems if not problem.tests]
    return dg.AssetCheckResult(
        passed=bool(problems) and not untested,
        metadata={"problems": len(problems), "without_tests": untested[:20]},
    )


def _shipped(stage: StageContext, added: dict[str, Place]) -> list[LoadedRows]:
    """Return what is read without being added."""
    family = stage.profile.family
    generators: dict[str, Callable[[], list[Problem]]] = {
        EMBEDDED: lambda: compositional.generate(family),
        simple.NAME: simple.generate,
        everyday.NAME: everyday.generate,
    }
    return [
        LoadedRows(name, generators[name]()) for name in stage.profile.shipped if name not in added
    ]


def _shipped_config(stage: StageContext) -> dict[str, Any]:
    config: dict[str, Any] = {each.NAME: hash_file(each.FILE) for each in (simple, everyday)}
    config["shipped"] = list(stage.profile.shipped)
    if not stage.profile.reads_family:
        return config
    family = stage.profile.family.model_dump(mode="json")
    return config | family


def _read(stage: StageContext, added: dict[str, Place]) -> list[LoadedRows]:
    loaded = []
    for done, (name, place) in enumerate(added.items()):
        stage.report.progress.at(done, len(added), name)
        loaded.append(load(name, place))
    return loaded


def _without_folder(text: str, place: Place | None) -> str:
    """Remove the source's folder from a text, so that its hash is the same at any place."""
    if place is None or place.path is None:
        return text
    return text.replace(f"{place.path if place.path.is_dir() else place.path.parent}/", "")


def _by_source(
    problems: list[Problem], rejected: list[dict[str, str]]
) -> dict[str, dict[str, Any]]:
    """Return the counts and the content hash of each source, for the manifest."""
    names = {problem.source for problem in problems} | {row["source"] for row in rejected}
    facts = {}
    for name in sorted(names):
        own = [problem for problem in problems if problem.source == name]
        parts = Counter("gated" if problem.gated else problem.split for problem in own)
        facts[name] = {
            "problems": len(own),
            "rejected": sum(row["source"] == name for row in rejected),
            "parts": dict(sorted(parts.items())),
            "licences": sorted({problem.licence for problem in own}),
            "content_hash": set_hash(own) if own else hash_data([]),
        }
    return facts


def _report_sources(
    context: dg.AssetExecutionContext, facts: dict[str, dict[str, Any]], added: dict[str, Place]
) -> None:
    context.instance.add_dynamic_partitions(str(sources.name), list(facts))
    for name, source in facts.items():
        metadata: dict[str, Any] = {
            "dagster/partition_row_count": source["problems"],
            "gated": source["parts"].get("gated", 0),
            "rejected": source["rejected"],
            "location": str(added[name]) if name in added else "generated",
            "licences": ", ".join(source["licences"]),
            "parts": dg.MetadataValue.md(
                markdown(("part", "problems"), list(source["parts"].items()))
            ),
        }
        if (place := added.get(name)) and place.mapped:
            metadata["columns"] = dg.MetadataValue.json(
                {"columns": dict(place.columns), "set": dict(place.constants)}
            )
        context.log_event(
            dg.AssetMaterialization(
                problem_sources.key,
                partition=name,
                metadata=metadata,
                tags={"dagster/data_version": source["content_hash"]},
            )
        )
