"""Reinforcement learning: verl trains on Ray, in a job that outlives the step; the checkpoint with
the best validation score is kept.

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
from assets.verified_reward import OWN_MANAGER, stamp, unverified_by
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
from resources.plugin_check import tried
from resources.registry.regressions import RegressionSet, boosted
from resources.run_context import Made, RunContext, StageContext, result
from rewards import watch
from rewards.components.efficiency import with_costs
from rewards.composite import reward_hash
from verl_jobs import faults
from verl_jobs.config.agents import Agents
from verl_jobs.config.training import Training
from verl_jobs.job import VALIDATION, TrainingJob, metrics
from verl_jobs.metrics.health import alarms
from verl_jobs.trainer.checkpoints import best
from verl_jobs.trainer.early_stop import a_token


@dg.asset(
    group_name=MODELS,
    kinds={"verl", "ray", "huggingface"},
    owners=OWNERS[MODELS],
    deps=[clean_problems, difficulty_rankings, sft_checkpoint],
    partitions_def=checkpoints,
    tags={"kind": "train"},
)
def checkpoint(context: dg.AssetExecutionContext, run_context: RunContext) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """The policy after verl's reinforcement learning: the checkpoint that solves the most
    validation problems, the earliest of equals.
    """
    with run_context.stage(context) as stage:
        rows = training_rows(stage)
        job = training_job(stage, rows)
        before = stage.store.current("checkpoints", start_of(stage).checkpoint)
        unverified = [
            *([job.chain] if job.battery.startswith("unverified") else []),
            *(unverified_by(before.manifest) if before else []),
        ]

        def make(folder: Path) -> Made:
            _try_own_parts(context, job)
            _train(context, stage, job)
            history = metrics(job.path)
            scores = job.validations()
            step, chosen = best(job.path, scores)
            shutil.copytree(
                chosen, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("manifest.json")
            )
            (folder / "measured.json").write_text(json.dumps(history), encoding="utf-8")
            facts = {
                "step": step,
                "steps": job.training.steps,
                "validation": scores[step],
                "validation_by_step": scores,
            }
            facts |= {"stopped": job.stopped} if job.stopped else {}
            return Made(
                facts
                | {
                    "battery": job.battery,
                    "unverified": unverified,
                    "timed": list(job.reward.timed),
                }
            )

        made = stage.made(
            "checkpoints",
            stage.pipeline_run.record.id,
            make,
            version=1,
            inputs=job.inputs | {"reward": job.reward_hash},
            config=job.training.model_dump(mode="json")
            | {"reward_config": job.reward.model_dump(mode="json")},
            seed=job.seed,
        )
        facts = made.manifest.facts
        early = f", stopped early: {facts['stopped']}" if facts.get("stopped") else ""
        stage.report.say(
            f"step {facts['step']} of {facts['steps']}, validation "
            f"{100 * facts['validation']:.1f} %{early}"
        )
    history, tasks = (
        json.loads((made.path / "measured.json").read_text(encoding="utf-8")),
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
    return result(made, metadata)


@dg.asset_check(asset=checkpoint, blocking=True)
def whole_checkpoint(
    context: dg.AssetCheckExecutionContext, run_context: RunContext
) -> dg.AssetCheckResult:
    """The folder's hash matches its manifest, and it loads with `trust_remote_code=False`, every
    weight finite.
    """
    made = run_context.store.require(
        "checkpoints", run_context.pipeline_run(context.run.tags).record.id
    )
    return loads(run_context, made)


@dg.asset_check(asset=checkpoint, blocking=True)
def no_growing_gap(
    context: dg.AssetCheckExecutionContext, run_context: RunContext
) -> dg.AssetCheckResult:
    """The hack watch: over the steps, the pass rate on visible tests did not run away from that on
    hidden tests (rewards/watch.py).
    """
    made = run_context.store.require(
        "checkpoints", run_context.pipeline_run(context.run.tags).record.id
    )
    history = json.loads((made.path / "measured.json").read_text(encoding="utf-8"))
    found = watch.growth(history)
    only = VALIDATION.replace("val-core", "val-aux").replace("/acc/", "/acc_success_only/")
    metadata = {
        "reason": found.reason,
        "denied_calls": _total(history, watch.DENIED),
        "answers_without_score": _total(history, watch.LOST),
        "validations_with_answers_without_score": sum(
            only in row and row[only] != row[VALIDATION] for row in history
        ),
        "gap_by_step": dg.MetadataValue.json(
            {str(row["step"]): row[watch.GAP] for row in history if watch.GAP in row}
        ),
    }
    return dg.AssetCheckResult(passed=not found.growing, metadata=metadata)


@dg.asset_check(asset=checkpoint)
def healthy_training(
    context: dg.AssetCheckExecutionContext, run_context: RunContext
) -> dg.AssetCheckResult:
    """Warns of completions that were truncated or lost, and of an engine whose probabilities differ
    from the trainer's.
    """
    made = run_context.store.require(
        "checkpoints", run_context.pipeline_run(context.run.tags).record.id
    )
    history = json.loads((made.path / "measured.json").read_text(encoding="utf-8"))
    found = alarms(a_token(history, run_context.profile.training))
    return dg.AssetCheckResult(
        passed=not found, severity=dg.AssetCheckSeverity.WARN, description="; ".join(found) or None
    )


def _total(history: list[dict[str, Any]], key: str) -> float | str:
    """Return the sum over the steps with this figure; an unmeasured figure is not 0."""
    told = [float(row[key]) for row in history if row.get(key) is not None]
    return sum(told) if told else "not measured"


def loads(run_context: RunContext, made: Artifact) -> dg.AssetCheckResult:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    run_context.store.verify(made)
    AutoTokenizer.from_pretrained(made.path, trust_remote_code=False, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(
        made.path, trust_remote_code=False, local_files_only=True
    )
    broken = [name for name, weight in model.named_parameters() if not torch.isfinite(weight).all()]
    return dg.AssetCheckResult(
        passed=not broken,
        metadata={
            "content_hash": made.content_hash,
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
        else stamp(stage.run_context.home, profile.reward),
        isolation=profile.sandbox.isolation,
        backend=profile.sandbox.backend,
        seed=record.seed,
        tracking_uri=stage.run_context.registry.uri,
        store=profile.storage.root,
    )
    return job.model_copy(
        update={"folder": str(stage.pipeline_run.folder / "training" / job.key[:12])}
    )


def lost_before(stage: StageContext) -> list[Problem]:
    """Return the tasks that champions have lost, if a regression of the champion started this run;
    else none.
    """
    record = stage.pipeline_run.record
    return (
        [
            lost.as_problem()
            for lost in RegressionSet(stage.run_context.home.regressions).read(record.number)
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
    if training.drawn or not lost_before(stage):
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

    timed, base, drawn = stage.profile.reward.timed, stage.profile.base, training_of(stage).drawn
    lost = lost_before(stage) if drawn else []
    if stage.profile.training.agents.on:
        refuse_silence(stage.profile.training.agents, read_parquet(clean.path / "problems.parquet"))

    def make(folder: Path) -> Made:
        problems = read_parquet(clean.path / "problems.parquet")
        ranked = read_ranks(ranks.path / "ranks.parquet")
        easy = {row.problem_id for row in ranked if row.passed == row.n}
        train = [problem for problem in trainable(problems, base) if problem.problem_id not in easy]
        tuned_on = validation(problems, answering(stage.profile.training.answer_tokens))
        if timed:
            with stage.run_context.sandbox() as sandbox:
                train = with_costs(sandbox, train)
        write_verl(train, folder / "train.parquet")
        write_validation(tuned_on, folder / "validation.parquet")
        if drawn:
            # Measured weights take precedence.
            found = next(
                (path for path in (ranks.path / WEIGHTS, clean.path / WEIGHTS) if path.exists()),
                None,
            )
            weights = {row.problem_id: row.weight for row in read_weights(found)} if found else {}
            write_expected(
                expect(train, ranked, boosted(weights, train, lost) if lost else weights),
                folder / FILE,
            )
        facts = {
            "train": len(train),
            "validation": len(tuned_on.problems),
            "left_out_as_solved": len(easy),
            "not_trained_on": len(untrained(problems, base)),
        }
        return Made(facts)

    inputs = {"clean_problems": clean.content_hash, "difficulty_rankings": ranks.content_hash}
    config = (
        {"base": base}
        | ({"measured": list(timed)} if timed else {})
        | ({"expected": True} if drawn else {})
    )
    inputs |= (
        {"regressions": hash_data(sorted(problem.content_hash for problem in lost))} if lost else {}
    )
    return stage.made("datasets", "training_rows", make, version=3, inputs=inputs, config=config)


def _try_own_parts(context: dg.AssetExecutionContext, job: TrainingJob) -> None:
    """Try the user's own parts before Ray is started. Raises PluginError."""
    for line in tried(job.training, unverified=job.reward.unverified):
        context.log.info(line)


def refuse_silence(agents: Agents, problems: Sequence[Problem]) -> None:
    """Raise NotReady if no problem has a visible test, so that the Executor could report nothing,
    or if no Generator would be trained.
    """
    if agents.trains == "reviewer":
        raise NotReady(
            "training.agents.trains: reviewer makes no model that writes programs: use "
            "`ratchet reviewer reinforce`"
        )
    if not any(problem.visible_tests for problem in problems if problem.split == "train"):
        raise NotReady(
            "conversations need problems that show a test: add some, or --set "
            "family.visible_tests=2 --set training.prompt_tokens=160"
        )


def _train(context: dg.AssetExecutionContext, stage: StageContext, job: TrainingJob) -> None:
    from resources.ray.job import train
    from resources.ray.place import ray_of

    ray = ray_of(stage.run_context.home, stage.profile, job)
    job.path.mkdir(parents=True, exist_ok=True)
    told_at, told_step, price = 0.0, 0, stage.profile.price_per_hour

    def look() -> None:
        nonlocal told_at, told_step
        history = metrics(job.path)
        if not history:
            return stage.report.progress.at(0, job.training.steps, "Ray and verl start")
        last = history[-1]
        stage.report.progress.at(
            last["step"], job.training.steps, f"reward {last.get('critic/score/mean', 0.0):.2f}"
        )
        if last["step"] > told_step and time.monotonic() - told_at >= EVERY_S:
            told_at, told_step = time.monotonic(), last["step"]
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
        train(job, ray, on_poll=look, bootstrap=dict(session.get_bootstrap_env_vars()))
