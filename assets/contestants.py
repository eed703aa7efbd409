"""The models and benchmarks of one pipeline run.

In: a stage context. Out: the start policy, the challenger and the champion, and the benchmarks on
which both are scored.
"""

from __future__ import annotations

from collections.abc import Sequence

from artifacts.pull import pull
from artifacts.store import Artifact
from evaluation.benchmarks import Benchmark, NotMeasured, heldout, regression, validation
from evaluation.benchmarks.embedded import NO_HELDOUT, answering, own_heldout
from evaluation.benchmarks.registry import measured
from problems.embedded.heldout import heldout_tasks
from problems.schema import Problem
from problems.stored import stored_problems
from resources.config.profile import HELDOUT
from resources.model_version import ModelVersion
from resources.registry.regressions import RegressionSet
from resources.run_context import StageContext


def start_of(stage: StageContext) -> ModelVersion:
    """Return the policy to train: the champion at the run's start, else the warmed-up model."""
    if champion := stage.pipeline_run.record.champion:
        pull(stage.store, champion.path)
        return champion
    warmed_up: Artifact = stage.store.require("checkpoints", "sft_checkpoint")
    return ModelVersion.of_artifact(f"{stage.pipeline_run.record.id}-sft", warmed_up)


def contestants_of(stage: StageContext) -> dict[str, ModelVersion]:
    """Return the models that are scored: the champion and the challenger.

    A rescore and a quick validation score the champion alone.
    """
    record, champion = stage.pipeline_run.record, opponent(stage)
    if record.kind in ("rescore", "validation"):
        return {"champion": champion}
    weights = stage.store.require("checkpoints", record.id)
    return {"champion": champion, "challenger": ModelVersion.of_artifact(record.id, weights)}


def opponent(stage: StageContext) -> ModelVersion:
    """Return the model that the challenger is compared with.

    This is the champion of the run's recorded decision, else the current champion, else the
    warmed-up model.
    """
    history, entry = stage.run_context.ledger.history(), stage.run_context.ledger.champion()
    decision = next(
        (
            each.decision
            for each in history
            if each.run_id == stage.pipeline_run.record.id and each.decision.get("champion")
        ),
        None,
    )
    if decision:
        content = decision["champion"]["content_hash"]
        entry = next(each for each in history if each.checkpoint_hash == content)
    if entry is None:
        return start_of(stage)
    pull(stage.store, entry.path)
    return entry.model


def benchmarks_of(stage: StageContext) -> tuple[list[Benchmark], dict[str, str]]:
    """Return the run's benchmarks, and the reason for each missing one by name.

    The benchmarks are validation, this run's held-out draw, the tasks that champions have lost, and
    the available public benchmarks of the profile.
    """
    config = stage.profile.evaluation
    sampling = answering(stage.profile.training.answer_tokens)
    clean = stored_problems(stage.store.require("datasets", "clean_problems").path)
    validation_benchmark = validation(clean, sampling)
    if stage.pipeline_run.record.kind == "validation":
        names = dict.fromkeys([HELDOUT, *(each.name for each in config.benchmarks)])
        return [validation_benchmark], dict.fromkeys(names, "left out: a quick validation")
    benchmarks: list[Benchmark] = [validation_benchmark]
    missing: dict[str, str] = {}
    if heldout_problems := _heldout(stage, clean):
        heldout_benchmark = heldout(heldout_problems, sampling)
        if heldout_settings := config.settings_of(HELDOUT):
            heldout_benchmark = heldout_benchmark.with_settings(heldout_settings)
        benchmarks.append(heldout_benchmark)
    else:
        missing[HELDOUT] = NO_HELDOUT
    if lost := [
        row.as_problem()
        for row in RegressionSet(stage.run_context.home.regressions).read(
            stage.pipeline_run.record.number
        )
        if row.benchmark == "heldout"
    ]:
        # Lost tasks of the other benchmarks are part of those benchmarks.
        benchmarks.append(regression(lost, sampling))
    for settings in config.benchmarks:
        if settings.name == HELDOUT:
            continue
        public = measured(settings, stage.run_context.home.path, config.hub)
        if isinstance(public, NotMeasured):
            missing[public.name] = public.reason
        else:
            benchmarks.append(public)
    return benchmarks, missing


def _heldout(stage: StageContext, clean: Sequence[Problem]) -> list[Problem]:
    """Return this run's held-out problems.

    A model made from scratch gets the next unused ones of the embedded family; a named base gets
    those of its sources, in every run the same.
    """
    if stage.profile.base:
        return own_heldout(clean)
    family = stage.profile.family
    draw = stage.pipeline_run.draw(family.seed, stage.profile.evaluation.heldout)
    return heldout_tasks(family, draw.first, draw.count)
