"""Reinforcement learning with verl, in a Ray job that outlives the Dagster step.

In: clean problems, the start policy, the rankings. Out: a Hugging Face folder with the checkpoint
that has the best validation score, one partition for each pipeline run. It becomes the challenger.
"""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.links import link_files
from artifacts.store import Artifact
from artifacts.tensors import not_finite
from assets.contestants import start_of
from assets.live import EVERY_S, live
from assets.partitions import TRAINING, checkpoints
from assets.pictures import training_picture
from assets.stages import STAGES, asset_of
from assets.training_job import training_job
from assets.training_rows import training_rows
from assets.verified_reward import battery_text, unverified_by
from evaluation.promotion.rate import points
from problems.dataset.trainable import explained
from resources.apart import apart
from resources.cost import BudgetSpent, end_if_spent
from resources.plugin_check import check_plugins
from resources.run_context import RunContext, StageContext, StageOutput, result
from rewards import watch
from verl_jobs import faults
from verl_jobs.job import VALIDATION, TrainingJob, metrics
from verl_jobs.metrics.alarms import alarms
from verl_jobs.trainer.checkpoints import best
from verl_jobs.trainer.early_stop import per_token

BUDGET_S = 60.0  # seconds between two looks at the budget


@dg.asset(
    **asset_of("checkpoint"),
    kinds={"verl", "ray", "huggingface"},
    partitions_def=checkpoints,
    pool=TRAINING,
)
def checkpoint(context: dg.AssetExecutionContext, run_context: RunContext) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """The policy after reinforcement learning with verl: the earliest checkpoint with the best
    validation score.
    """
    with run_context.stage(context) as stage:
        rows = training_rows(stage)
        job = training_job(stage, rows)

        def make(folder: Path) -> StageOutput:
            _check_plugins(context, job)
            _train(context, stage, job)
            facts = write_checkpoint(job, folder)
            return StageOutput(facts | {"unverified": _unverified(stage, job)})

        artifact = stage.artifact(
            STAGES["checkpoint"],
            make,
            name=stage.pipeline_run.record.id,
            inputs=job.inputs | {"reward": job.reward_hash},
            config=job.training.model_dump(mode="json")
            | {"reward_config": job.reward.model_dump(mode="json")},
            seed=job.seed,
        )
        facts = artifact.manifest.facts
        early_note = f", stopped early: {facts['stopped']}" if facts.get("stopped") else ""
        stage.report.say(
            f"step {facts['step']} of {facts['steps']}, validation "
            f"{100 * facts['validation']:.1f} %{early_note}"
        )
    metadata = _metadata(artifact, job, rows) | {
        "start": start_of(stage).checkpoint,
        **run_context.tracker.links(job, run_context.mlflow),
    }
    return result(artifact, metadata)


def write_checkpoint(job: TrainingJob, folder: Path) -> dict[str, Any]:
    """Link a finished job's best checkpoint and write its metrics here. Return its facts."""
    scores = job.validations()
    step, best_folder = best(job.path, scores)
    link_files(best_folder, folder)
    (folder / "measured.json").write_text(json.dumps(metrics(job.path)), encoding="utf-8")
    return {
        "step": step,
        "steps": job.training.steps,
        "validation": scores[step],
        "validation_by_step": scores,
        **({"stopped": job.stopped} if job.stopped else {}),
        "battery": job.battery,
        "timed": list(job.reward.timed),
    }


def _unverified(stage: StageContext, job: TrainingJob) -> list[str]:
    """Return the trainings with an unverified reward, from this one back to the first start."""
    start = stage.store.current("checkpoints", start_of(stage).checkpoint)
    return [
        *([job.run_id] if job.battery.startswith("unverified") else []),
        *(unverified_by(start.manifest) if start else []),
    ]


def _metadata(artifact: Artifact, job: TrainingJob, rows: Artifact) -> dict[str, Any]:
    facts, row_facts = artifact.manifest.facts, rows.manifest.facts
    history = json.loads((artifact.path / "measured.json").read_text(encoding="utf-8"))
    by_step = {int(step): share for step, share in facts["validation_by_step"].items()}
    return {
        "headline": _headline(by_step, facts, row_facts["validation"]),
        "training": dg.MetadataValue.md(training_picture(history)),
        "step": facts["step"],
        "problems": row_facts["train"],
        "not_trained_on": dg.MetadataValue.md(explained(row_facts["not_trained_on"]) or "none"),
        "validation_pass_at_1": facts["validation"],
        "battery": battery_text(facts.get("battery", "")),
        "stopped_early": facts.get("stopped", "no"),
        "faults": dg.MetadataValue.md(
            "\n".join(f"- {fault}" for fault in faults.read(job.path)) or "none"
        ),
    }


def _headline(by_step: Mapping[int, float], facts: Mapping[str, Any], tasks: int) -> str:
    """Return the share of solved validation problems, at the first measurement and at the chosen
    step.
    """
    first = min(by_step)
    before = f"{points(by_step[first])} % (step {first}) → " if first != facts["step"] else ""
    return (
        f"{before}{points(facts['validation'])} % (step {facts['step']} of {facts['steps']}) of "
        f"{tasks} validation problems solved"
    )


@dg.asset_check(asset=checkpoint, blocking=True)
def whole_checkpoint(
    context: dg.AssetCheckExecutionContext, run_context: RunContext
) -> dg.AssetCheckResult:
    """The folder has its manifest's hash; tokenizer and config load without remote code; all
    weights are finite.
    """
    artifact = _stored(context, run_context)
    return check_loads(run_context, artifact)


@dg.asset_check(asset=checkpoint, blocking=True)
def no_growing_gap(
    context: dg.AssetCheckExecutionContext, run_context: RunContext
) -> dg.AssetCheckResult:
    """The gap between pass rates on visible and on hidden tests did not grow (rewards/watch.py)."""
    artifact = _stored(context, run_context)
    history = json.loads((artifact.path / "measured.json").read_text(encoding="utf-8"))
    growth = watch.growth(history)
    judged_only = VALIDATION.replace("val-core", "val-aux").replace("/acc/", "/acc_success_only/")
    metadata = {
        "reason": growth.reason,
        "denied_calls": _total(history, watch.DENIED),
        "answers_without_score": _total(history, watch.LOST),
        "validations_with_answers_without_score": sum(
            judged_only in row and row[judged_only] != row[VALIDATION] for row in history
        ),
        "gap_by_step": dg.MetadataValue.json(
            {str(row["step"]): row[watch.GAP] for row in history if watch.GAP in row}
        ),
    }
    return dg.AssetCheckResult(passed=not growth.growing, metadata=metadata)


@dg.asset_check(asset=checkpoint)
def healthy_training(
    context: dg.AssetCheckExecutionContext, run_context: RunContext
) -> dg.AssetCheckResult:
    """Few completions were truncated or lost, and the engine's probabilities match the trainer's.

    A failure is a warning.
    """
    artifact = _stored(context, run_context)
    history = json.loads((artifact.path / "measured.json").read_text(encoding="utf-8"))
    messages = alarms(per_token(history, run_context.profile.training))
    return dg.AssetCheckResult(
        passed=not messages,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(messages) or None,
    )


def _stored(context: dg.AssetCheckExecutionContext, run_context: RunContext) -> Artifact:
    """Return the checkpoint of the pipeline run that the context belongs to."""
    run_id = run_context.pipeline_run(context.run.tags).record.id
    return run_context.store.require("checkpoints", run_id)


def _total(history: list[dict[str, Any]], key: str) -> float | str:
    """Return the sum over the steps that have this metric, or "not measured" if none has it."""
    values = [float(row[key]) for row in history if row.get(key) is not None]
    return sum(values) if values else "not measured"


def check_loads(run_context: RunContext, artifact: Artifact) -> dg.AssetCheckResult:
    """Load the artifact's tokenizer and config, and read its weights. Raises CorruptArtifact if the
    hash is wrong.
    """
    run_context.store.verify(artifact)
    apart(_load, artifact.path)
    broken = not_finite(artifact.path)
    return dg.AssetCheckResult(
        passed=any(artifact.path.glob("*.safetensors")) and not broken,
        metadata={
            "content_hash": artifact.content_hash,
            "not_finite": dg.MetadataValue.json(broken[:20]),
        },
    )


def _load(folder: Path) -> None:
    from transformers import AutoConfig, AutoTokenizer

    for part in (AutoTokenizer, AutoConfig):
        part.from_pretrained(folder, trust_remote_code=False, local_files_only=True)


def _check_plugins(context: dg.AssetExecutionContext, job: TrainingJob) -> None:
    """Check the user's plug-ins before Ray is started. Raises PluginError."""
    for line in check_plugins(job.training, unverified=job.reward.unverified):
        context.log.info(line)


def _train(context: dg.AssetExecutionContext, stage: StageContext, job: TrainingJob) -> None:
    """Run the Ray job to its end, with progress and observations of the asset while it runs."""
    from resources.ray.job import train

    run_context, profile = stage.run_context, stage.profile
    ray = run_context.ray.of(job, run_context.home, profile)
    job.path.mkdir(parents=True, exist_ok=True)
    observed_at, observed_step, logged_step, price = 0.0, 0, 0, profile.price_per_hour
    checked_at = time.monotonic()

    def report_progress() -> None:
        nonlocal observed_at, observed_step, logged_step, checked_at
        if profile.cost.budget and time.monotonic() - checked_at >= BUDGET_S:
            checked_at = time.monotonic()
            end_if_spent(run_context.as_settings, datetime.now(UTC))
        history = metrics(job.path)
        if not history:
            return stage.report.progress.at(0, job.training.steps, "starting Ray and verl")
        last = history[-1]
        stage.report.progress.at(
            last["step"], job.training.steps, f"reward {last.get('critic/score/mean', 0.0):.2f}"
        )
        if last["step"] > logged_step:
            logged_step = last["step"]
            run_context.tracker.log(job, history)
        if last["step"] > observed_step and time.monotonic() - observed_at >= EVERY_S:
            observed_at, observed_step = time.monotonic(), last["step"]
            metadata = live(
                history, session.get_custom_messages(), job.training.steps, price, time.time()
            )
            context.log_event(
                dg.AssetObservation(
                    context.asset_key, partition=stage.pipeline_run.record.id, metadata=metadata
                )
            )

    reader = dg.PipesFileMessageReader(str(job.path / "messages.jsonl"))
    with dg.open_pipes_session(context, dg.PipesTempFileContextInjector(), reader) as session:
        bootstrap = dict(session.get_bootstrap_env_vars())
        held = run_context.home.lease
        try:
            train(job, ray, on_poll=report_progress, bootstrap=bootstrap, held=held)
        except BudgetSpent as spent:
            raise dg.Failure(
                f"the training saved and ended: {spent}", allow_retries=False
            ) from None
    run_context.tracker.log(job, metrics(job.path))
