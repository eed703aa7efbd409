"""Sensor that scores the champion again if its benchmark, harness or contamination report has
changed.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import dagster as dg

from artifacts.hashing import hash_data
from artifacts.store import Artifact
from assets.contestant_scores import read_scores, reports_of
from assets.partitions import checkpoints
from evaluation.benchmark_settings import BenchmarkSettings
from evaluation.benchmarks import Benchmark, NotMeasured, validation
from evaluation.benchmarks.registry import files_of, measured
from evaluation.judging.by_problem import VERSION
from evaluation.judging.scoring import harness_version
from evaluation.scorecard import Scorecard
from pipelines.jobs import evaluate_checkpoint
from pipelines.sensors.sensor import sensor
from problems.reading.place import Place
from problems.schema import read_parquet
from resources.config.profile import HELDOUT
from resources.registry.ledger import Entry
from resources.run_context import RunContext
from resources.run_record import readable

OWN_TESTS = ("heldout", "regression", "validation")  # benchmarks without a published harness


@sensor(job=evaluate_checkpoint)
def stale_scores(context: dg.SensorEvaluationContext, run_context: RunContext) -> dg.SensorResult:
    """Scores the champion again if a benchmark, a harness or a report has changed since its last
    score; once for each change.
    """
    champion = run_context.ledger.champion()
    if champion is None:
        return dg.SensorResult(skip_reason="there is no champion yet")
    last = last_scores(run_context, champion)
    if last is None:
        return dg.SensorResult(skip_reason=f"{champion.checkpoint} has no stored scores")
    artifact, cards = last
    if not (changed := stale(run_context, artifact, cards)):
        return dg.SensorResult(skip_reason=f"the scores of {champion.checkpoint} are up to date")
    state = hash_data([champion.checkpoint_hash, changed])[:12]
    name = f"rescore-{champion.checkpoint_hash[:8]}-{state}"
    why = f"changed since its last score: {', '.join(changed)}"
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                run_key=name,
                partition_key=name,
                tags={"ratchet/why": why, "ratchet/kind": "rescore"},
            )
        ],
        dynamic_partitions_requests=[checkpoints.build_add_request([name])],
    )


def stale(
    run_context: RunContext, artifact: Artifact, cards: dict[str, Scorecard]
) -> dict[str, str]:
    """Return the changed inputs of the scores with their current values.

    Held-out draws, which always differ, and benchmarks that cannot be read now are not compared.
    """
    current = versions(run_context)
    changed = {
        name: current[name].benchmark
        for name, card in cards.items()
        if name in current and current[name].benchmark != card.benchmark_version
    }
    harnesses = {
        name: current[name].harness
        if name in current
        else VERSION
        if name in OWN_TESTS
        else card.harness_version
        for name, card in cards.items()
    }
    if other := sorted(
        version for name, version in harnesses.items() if version != cards[name].harness_version
    ):
        changed["harness"] = other[0]
    scored_inputs = artifact.manifest.inputs
    return changed | {
        name: report
        for name, report in reports_of(run_context.store).items()
        if scored_inputs.get(name, report) != report
    }


class Versions(NamedTuple):
    """The current versions of a benchmark and of its harness."""

    benchmark: str
    harness: str


def versions(run_context: RunContext) -> dict[str, Versions]:
    """Return the versions of validation and of the profile's benchmarks with local files."""
    clean = run_context.store.current("datasets", "clean_problems")
    current = (
        {"validation": _validation(str(clean.path / "problems.parquet"), clean.content_hash)}
        if clean
        else {}
    )
    for settings in run_context.profile.evaluation.benchmarks:
        files = [] if settings.name == HELDOUT else files_of(settings, run_context.home.path)
        if not files or not all(path.exists() for path in files):
            continue
        content = hash_data([Place(path).content for path in files])
        if public := _public(settings, content, run_context.home.path):
            current[public[0]] = public[1]
    return current


def last_scores(
    run_context: RunContext, champion: Entry
) -> tuple[Artifact, dict[str, Scorecard]] | None:
    """Return the champion's newest scores on all benchmarks, by a rescore or its promotion."""
    rescored = [
        r
        for r in readable(run_context.home.runs)
        if r.kind == "rescore"
        and r.champion
        and r.champion.content_hash == champion.checkpoint_hash
    ]
    origin = next(
        (
            e
            for e in run_context.ledger.history()
            if e.kind in ("install", "promote") and e.checkpoint_hash == champion.checkpoint_hash
        ),
        None,
    )
    names = [record.id for record in rescored[::-1]] + (
        [origin.run_id.removesuffix("/first")] if origin else []
    )
    for name in names:
        if artifact := run_context.store.current("scores", name):
            sides = read_scores(artifact)
            for cards in (sides.champion, sides.challenger):
                if cards and next(iter(cards.values())).checkpoint_hash == champion.checkpoint_hash:
                    return artifact, cards
    return None


@lru_cache(maxsize=4)
def _validation(path: str, content: str) -> Versions:
    return _versions(validation(read_parquet(Path(path))))


@lru_cache(maxsize=16)
def _public(settings: BenchmarkSettings, content: str, home: Path) -> tuple[str, Versions] | None:
    benchmark = measured(settings, home)
    if isinstance(benchmark, NotMeasured):
        return None
    return benchmark.name, _versions(benchmark)


def _versions(benchmark: Benchmark) -> Versions:
    return Versions(benchmark.version, harness_version(benchmark.harness))
