"""Scores of one checkpoint on one benchmark: a scorecard for each cell of checkpoint × benchmark.

A pipeline run scores its contestants and reports the cells. A cell can also be materialized alone,
for any stored checkpoint and any benchmark of the profile.
"""

from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.store import Artifact
from assets.generation import Generation, engine_of, of_benchmarks, references_of
from assets.partitions import BENCHMARK, CHECKPOINT, cells
from assets.stages import STAGES, asset_of
from assets.verified_reward import unverified_by
from evaluation.benchmark_settings import BenchmarkSettings
from evaluation.benchmarks import Benchmark, NotMeasured
from evaluation.benchmarks.registry import measured
from evaluation.evaluate import evaluate
from evaluation.judging.scoring import harness_version
from evaluation.promotion.rate import Rate
from evaluation.scorecard import Scorecard
from resources.config.profile import HELDOUT
from resources.model_version import ModelVersion
from resources.run_context import BENCHMARKS, RunContext, StageContext, StageOutput, result


@dg.asset(
    **asset_of("benchmark_scores"),
    kinds={"huggingface", "json"},
    partitions_def=cells,
)
def benchmark_scores(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """One checkpoint's scorecard on one benchmark, with the profile's generation settings."""
    cell = dict(context.partition_key.keys_by_dimension)  # type: ignore[attr-defined]
    name, benchmark_name = cell[CHECKPOINT], cell[BENCHMARK]
    with run_context.stage(context, trains=False) as stage:
        if benchmark_name == HELDOUT:
            raise dg.Failure(
                "a held-out draw belongs to a pipeline run: use the job evaluate_checkpoint",
                allow_retries=False,
            )
        # A benchmark that the profile does not name has the default settings.
        settings = stage.profile.evaluation.settings_of(benchmark_name) or BenchmarkSettings(
            name=benchmark_name
        )
        benchmark = measured(settings, run_context.home.path, stage.profile.evaluation.hub)
        if isinstance(benchmark, NotMeasured):
            raise dg.Failure(f"{benchmark_name}: {benchmark.reason}", allow_retries=False)
        weights = stage.store.require("checkpoints", name)
        contestant = ModelVersion.of_artifact(name, weights)
        generation = of_benchmarks(stage, [contestant], [benchmark])
        artifact = scored(stage, contestant, benchmark, generation)
        card = Scorecard.stored(artifact)
        stage.report.say(f"{name} on {benchmark_name}: {100 * card.pass_at_1:.1f} %")
    stage.pipeline_run.change(state="done")
    return result(artifact, cell_metadata(card))


def report_cells(context: dg.AssetExecutionContext, artifacts: list[Artifact]) -> None:
    """Report a pipeline run's scorecards as cells of `benchmark_scores`."""
    cards = [(artifact, Scorecard.stored(artifact)) for artifact in artifacts]
    context.instance.add_dynamic_partitions(
        BENCHMARKS, sorted({card.benchmark for _, card in cards})
    )
    for artifact, card in cards:
        context.log_event(
            dg.AssetMaterialization(
                benchmark_scores.key,
                partition=dg.MultiPartitionKey(
                    {CHECKPOINT: card.checkpoint, BENCHMARK: card.benchmark}
                ),
                metadata=cell_metadata(card) | {"path": dg.MetadataValue.path(str(artifact.path))},
                tags={"dagster/data_version": artifact.content_hash},
            )
        )


def cell_metadata(card: Scorecard) -> dict[str, Any]:
    """Return a scorecard's metadata in Dagster, which plots its numbers over the partitions."""
    rate = Rate.of(card)
    return {
        "pass_at_1": rate.share,
        "low": rate.low,
        "high": rate.high,
        "tasks": rate.tasks,
        "sampling": dg.MetadataValue.json(card.sampling),
        "benchmark_version": card.benchmark_version,
        "harness_version": card.harness_version,
    }


def scored(
    stage: StageContext, contestant: ModelVersion, benchmark: Benchmark, generation: Generation
) -> Artifact:
    """Return the scorecard of these weights on this benchmark, from the store if it has one.

    generation: of this contestant and benchmark, among others.
    """
    inputs = {"checkpoint": contestant.content_hash, "benchmark": benchmark.version}
    config = {
        "sampling": benchmark.sampling.model_dump(mode="json"),
        "harness": harness_version(benchmark.harness),
        **engine_of(stage.profile),
    }

    def make(folder: Path) -> StageOutput:
        def on_progress(step: str, done: int, total: int) -> None:
            stage.report.progress.at(
                done, total, f"{contestant.checkpoint} on {benchmark.name}: {step}"
            )

        source = generation.source(Path(contestant.path), benchmark.form)
        with stage.run_context.new_sandbox() as sandbox:
            card = evaluate(
                Path(contestant.path),
                contestant.checkpoint,
                contestant.content_hash,
                benchmark,
                sandbox,
                on_progress=on_progress,
                cache=generation.cache,
                references=references_of(stage),
                source=source,
            )
        card.write(folder / "scorecard.json")
        weights = stage.store.current("checkpoints", contestant.checkpoint)
        trainings = unverified_by(weights.manifest) if weights else []
        return StageOutput(
            {"pass_at_1": card.pass_at_1, "tasks": len(card.solved)}
            | ({"unverified": trainings} if trainings else {}),
            content_hash=card.content_hash,
            isolation=card.isolation,
        )

    return stage.artifact(
        STAGES["benchmark_scores"],
        make,
        name=f"{contestant.checkpoint}--{benchmark.name}",
        inputs=inputs,
        config=config,
    )
