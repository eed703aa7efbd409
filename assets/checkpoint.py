"""Reinforcement learning with verl, in a Ray job that outlives the step. The checkpoint with the
best validation score becomes the challenger.

In: clean problems, the start policy, the rankings. Out: a Hugging Face folder, one partition for
each pipeline run.
"""

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.hashing import hash_data
from artifacts.store import Artifact
from assets.clean_problems import clean_problems
from assets.difficulty_rankings import difficulty_rankings, start_of
from assets.live import EVERY_S, live
from assets.partitions import MODELS, OWNERS, checkpoints
from assets.pictures import training_picture
from assets.sft_checkpoint import sft_checkpoint
from assets.verified_reward import OWN_MANAGER, battery_stamp, unverified_by
from evaluation.benchmarks.embedded import answering, validation
from evaluation.benchmarks.validation_parquet import write_validation
from problems.dataset.balance import read_weights
from problems.dataset.card import WEIGHTS
from problems.dataset.rl_parquet import write_verl
from problems.dataset.trainable import explained, trainable, untrained
from problems.difficulty.difficulty import read_ranks
from problems.difficulty.pass_rate_prior import FILE, expect, write_expected
from problems.schema import Problem, read_parquet
from resources.home import NotReady
from resources.plugin_check import check_plugins
from resources.registry.regressions import RegressionSet, boosted
from resources.run_context import RunContext, StageContext, StageOutput, result
from rewards import watch
from rewards.components.efficiency import with_costs
from rewards.composite import reward_hash
from verl_jobs import faults
from verl_jobs.config.agents import Agents
from verl_jobs.config.training import Training
from verl_jobs.job import VALIDATION, TrainingJob, metrics
from verl_jobs.metrics.health import alarms
from verl_jobs.trainer.checkpoints import best
from verl_jobs.trainer.early_stop import per_token


@dg.asset(
    group_name=MODELS,
    kinds={"verl", "ray", "huggingface"},
    owners=OWNERS[MODELS],
    deps=[clean_problems, difficulty_rankings, sft_checkpoint],
    partitions_def=checkpoints,
    tags={"kind": "train"},
)
def checkpoint(context: dg.AssetExecutionContext, run_context: RunContext) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """The policy after reinforcement learning with verl: the earliest checkpoint with the best
    validation score.
    """
    with run_context.stage(context) as stage:
        rows = training_rows(stage)
        job = training_job(stage, rows)
        start_artifact = stage.store.current("checkpoints", start_of(stage).checkpoint)
        unverified = [
            *([job.chain] if job.battery.startswith("unverified") else []),
            *(unverified_by(start_artifact.manifest) if start_artifact else []),
        ]

        def make(folder: Path) -> StageOutput:
            _check_plugins(context, job)
            _train(context, stage, job)
            history = metrics(job.path)
            scores = job.validations()
            step, best_folder = best(job.path, scores)
            shutil.copytree(
                best_folder,
                folder,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("manifest.json"),
            )
            (folder / "measured.json").write_text(json.dumps(history), encoding="utf-8")
            facts = {
                "step": step,
                "steps": job.training.steps,
                "validation": scores[step],
                "validation_by_step": scores,
            }
            facts |= {"stopped": job.stopped} if job.stopped else {}
            return StageOutput(
                facts
                | {
                    "battery": job.battery,
                    "unverified": unverified,
                    "timed": list(job.reward.timed),
                }
            )

        artifact = stage.artifact(
            "checkpoints",
            stage.pipeline_run.record.id,
            make,
            version=1,
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
    history, tasks = (
        json.loads((artifact.path / "measured.json").read_text(encoding="utf-8")),
        rows.manifest.facts["validation"],
    )
    metadata = {
        "step": facts["step"],
        "problems": rows.manifest.facts["train"],
        "not_trained_on": explained(rows.manifest.facts["not_trained_on"]),
        "validation_pass_at_1": facts["validation"],
        "start": start_of(stage).checkpoint,
        "battery": facts.get("battery", ""),
        "stopped_early": facts.get("stopped", "no"),
        "faults": dg.MetadataValue.md(
            "\n".join(f"- {fault}" for fault in faults.read(job.path)) or "none"
        ),
        "training": dg.MetadataValue.md(training_picture(history, tasks)),
        "mlflow": run_context.registry.uri,
        "wandb": dg.MetadataValue.path(str(job.path / "wandb")),
    }
    return result(artifact, metadata)


@dg.asset_check(asset=checkpoint, blocking=True)
def whole_checkpoint(
    context: dg.AssetCheckExecutionContext, run_context: RunContext
) -> dg.AssetCheckResult:
    """The folder's hash matches its manifest, it loads with `trust_remote_code=False`, and all
    weights are finite.
    """
    artifact = _stored(context, run_context)
    return check_loads(run_context, artifact)


@dg.asset_check(asset=checkpoint, blocking=True)
def no_growing_gap(
    context: dg.AssetCheckExecutionContext, run_context: RunContext
) -> dg.AssetCheckResult:
    """The gap between the pass rates on visible and on hidden tests did not grow over the steps
    (rewards/watch.py).
    """
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
    Warns only.
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
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    run_context.store.verify(artifact)
    AutoTokenizer.from_pretrained(artifact.path, trust_remote_code=False, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(
        artifact.path, trust_remote_code=False, local_files_only=True
    )
    broken = [name for name, weight in model.named_parameters() if not torch.isfinite(weight).all()]
    return dg.AssetCheckResult(
        passed=not broken,
        metadata={
            "content_hash": artifact.content_hash,
            "not_finite": dg.MetadataValue.json(broken[:20]),
        },
    )


def training_job(stage: StageContext, rows: Artifact) -> TrainingJob:
    """Return the training job. Its folder follows from everything that decides the result, so
    another config never resumes from these checkpoints.
    """
    profile, record, start = stage.profile, stage.pipeline_run.record, start_of(stage)
    job = TrainingJob(
        folder="",
        chain=record.id,
        start=start.path,
        train=str(rows.path / "train.parquet"),
        validation=str(rows.path / "validation.parquet"),
        inputs={"start": start.content_hash, "training_rows": rows.content_hash}
        | profile.training.plugins.hashes(),
        training=training_of(stage),
        reward=profile.reward,
        reward_hash=reward_hash(profile.reward),
        battery=OWN_MANAGER
        if profile.training.plugins.reward_manager
        else battery_stamp(stage.run_context.home, profile.reward),
        isolation=profile.sandbox.isolation,
        backend=profile.sandbox.backend,
        seed=record.seed,
        tracking_uri=stage.run_context.registry.uri,
        store=profile.storage.root,
    )
    return job.model_copy(
        update={"folder": str(stage.pipeline_run.folder / "training" / job.key[:12])}
    )


def regression_problems(stage: StageContext) -> list[Problem]:
    """Return the tasks that champions have lost, if a regression of the champion started this run;
    else none.
    """
    record = stage.pipeline_run.record
    return (
        [
            task.as_problem()
            for task in RegressionSet(stage.run_context.home.regressions).read(record.number)
        ]
        if record.regression
        else []
    )


def training_of(stage: StageContext) -> Training:
    """Return the profile's training. A training started by a regression draws problems by weights,
    so that those similar to the lost tasks come more often. A curriculum or sampler of the profile
    stays; the curriculum uses these weights.
    """
    training = stage.profile.training
    if training.selects_problems or not regression_problems(stage):
        return training
    return training.model_copy(
        update={"curriculum": training.curriculum.model_copy(update={"schedule": "weighted"})}
    )


def training_rows(stage: StageContext) -> Artifact:
    """Write training and validation problems as verl reads them. Problems that the policy always
    solves are left out: they teach it nothing.
    """
    clean, ranks = (
        stage.store.require("datasets", "clean_problems"),
        stage.store.require("datasets", "difficulty_rankings"),
    )

    timed, base, drawn = (
        stage.profile.reward.timed,
        stage.profile.base,
        training_of(stage).selects_problems,
    )
    lost = regression_problems(stage) if drawn else []
    if stage.profile.training.agents.on:
        check_conversations(
            stage.profile.training.agents, read_parquet(clean.path / "problems.parquet")
        )

    def make(folder: Path) -> StageOutput:
        problems = read_parquet(clean.path / "problems.parquet")
        ranked = read_ranks(ranks.path / "ranks.parquet")
        easy = {row.problem_id for row in ranked if row.passed == row.n}
        train = [problem for problem in trainable(problems, base) if problem.problem_id not in easy]
        validation_problems = validation(problems, answering(stage.profile.training.answer_tokens))
        if timed:
            with stage.run_context.sandbox() as sandbox:
                train = with_costs(sandbox, train)
        write_verl(train, folder / "train.parquet")
        write_validation(validation_problems, folder / "validation.parquet")
        if drawn:
            # Measured weights take precedence.
            path = next(
                (path for path in (ranks.path / WEIGHTS, clean.path / WEIGHTS) if path.exists()),
                None,
            )
            weights = {row.problem_id: row.weight for row in read_weights(path)} if path else {}
            write_expected(
                expect(
                    train,
                    ranked,
                    boosted(weights, train, lost) if lost else weights,
                ),
                folder / FILE,
            )
        facts = {
            "train": len(train),
            "validation": len(validation_problems.problems),
            "left_out_as_solved": len(easy),
            "not_trained_on": len(untrained(problems, base)),
        }
        return StageOutput(facts)

    inputs = {"clean_problems": clean.content_hash, "difficulty_rankings": ranks.content_hash}
    config = (
        {"base": base}
        | ({"measured": list(timed)} if timed else {})
        | ({"expected": True} if drawn else {})
    )
    if lost:
        inputs["regressions"] = hash_data(sorted(problem.content_hash for problem in lost))
    return stage.artifact(
        "datasets", "training_rows", make, version=3, inputs=inputs, config=config
    )


def _check_plugins(context: dg.AssetExecutionContext, job: TrainingJob) -> None:
    """Check the user's plug-ins before Ray is started. Raises PluginError."""
    for line in check_plugins(job.training, unverified=job.reward.unverified):
        context.log.info(line)


def check_conversations(agents: Agents, problems: Sequence[Problem]) -> None:
    """Raise NotReady if no problem has a visible test, so that the Executor could report nothing,
    or if no Generator would be trained.
    """
    if agents.trains == "reviewer":
        raise NotReady(
            "training.agents.trains: reviewer trains no model that writes programs: run "
            "`ratchet reviewer reinforce` instead"
        )
    if not any(problem.visible_tests for problem in problems if problem.split == "train"):
        raise NotReady(
            "training.agents: no training problem has a visible test, which conversations need: "
            "add some, or --set family.visible_tests=2 --set training.prompt_tokens=160"
        )


def _train(context: dg.AssetExecutionContext, stage: StageContext, job: TrainingJob) -> None:
    from resources.ray.job import train
    from resources.ray.place import ray_of

    ray = ray_of(stage.run_context.home, stage.profile, job)
    job.path.mkdir(parents=True, exist_ok=True)
    observed_at, observed_step, price = 0.0, 0, stage.profile.price_per_hour

    def report_progress() -> None:
        nonlocal observed_at, observed_step
        history = metrics(job.path)
        if not history:
            return stage.report.progress.at(0, job.training.steps, "starting Ray and verl")
        last = history[-1]
        stage.report.progress.at(
            last["step"], job.training.steps, f"reward {last.get('critic/score/mean', 0.0):.2f}"
        )
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
        train(job, ray, on_poll=report_progress, bootstrap=dict(session.get_bootstrap_env_vars()))
