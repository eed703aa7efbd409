"""Sensors that start a retraining: after changed problems, or a regression of the champion.

They read the home's files, not Dagster's events, so a lost Dagster database loses no work. Each
cause starts one retraining; another one if it failed, none if a person stopped it.
"""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import takewhile

import dagster as dg

from artifacts.hashing import hash_data
from assets.contestant_scores import read_scores
from assets.partitions import checkpoints
from evaluation.promotion.regression import Regression, regressed, same_supply
from evaluation.scorecard import Scorecard
from pipelines.jobs import evaluate_checkpoint, full_pipeline
from pipelines.sensors.sensor import sensor
from problems.catalogue import read_sources
from resources import lease
from resources.config.profile import Automation
from resources.cost import check_budget
from resources.home import NotReady
from resources.registry.ledger import Entry
from resources.run_context import KEY, PARTITION, RunContext
from resources.run_record import RunRecord, next_id, readable

RESCORE_HOURS = 24  # after which the champion is scored again on a new held-out draw
MAX_STARTS = 100  # that are read of Dagster's runs, newest first


@sensor(job=full_pipeline, trains=True)
def changed_problems(
    context: dg.SensorEvaluationContext, run_context: RunContext
) -> dg.SensorResult:
    """Starts a retraining if the sources differ from those of the last data refresh. After one that
    failed it waits for the cooldown and starts another.
    """
    if run_context.profile.dataset:
        return dg.SensorResult(skip_reason="the profile names a dataset; sources are not read")
    artifact = run_context.store.current("datasets", "raw_problems")
    if artifact is None:
        return dg.SensorResult(
            skip_reason="no problems have been read yet: start a first run, e.g. `ratchet demo`"
        )
    if missing := [
        f"{name} ({place.path})"
        for name, place in read_sources(run_context.home.path).items()
        if place.path and not place.path.exists()
    ]:
        return dg.SensorResult(
            skip_reason=(
                f"missing sources: {', '.join(missing)}: restore them, or add them again with "
                "`ratchet data add`"
            )
        )
    current = {name: place.content for name, place in read_sources(run_context.home.path).items()}
    changed = sorted(
        name
        for name in current.keys() | artifact.manifest.inputs.keys()
        if current.get(name) != artifact.manifest.inputs.get(name)
    )
    key = f"problems-{hash_data(current)}"
    earlier = attempts(context.instance, key)
    if changed:
        why = f"problems changed: {', '.join(changed)}"
    elif failed := [*takewhile(_failed, earlier)]:  # after it had read them
        if trained_since(run_context, failed[-1].create_timestamp.timestamp()):
            return dg.SensorResult(skip_reason="the sources have been trained on")
        why = failed[0].dagster_run.tags["ratchet/why"]
    else:
        return dg.SensorResult(skip_reason="the sources have not changed since the last refresh")
    if holder := lease.holder(run_context.home.lease):
        return dg.SensorResult(skip_reason=f"{why}; waiting while {holder} trains")
    if earlier and (reason := refusal(run_context, earlier)):
        return dg.SensorResult(skip_reason=f"{why}. {reason}")
    return retraining(run_context, why, key, earlier)


@sensor(jobs=[full_pipeline, evaluate_checkpoint], trains=True)
def champion_regression(
    context: dg.SensorEvaluationContext, run_context: RunContext
) -> dg.SensorResult:
    """Scores the champion on a fresh held-out draw each day. A significant regression starts a
    retraining, once for each champion and benchmark.
    """
    champion = run_context.ledger.champion()
    if champion is None:
        return dg.SensorResult(skip_reason="there is no champion yet")
    config, started_at = (
        run_context.profile.automation,
        [float(at) for at in json.loads(context.cursor or "[]")],
    )
    rescored = [
        r
        for r in readable(run_context.home.runs)
        if r.kind == "rescore"
        and r.champion
        and r.champion.content_hash == champion.checkpoint_hash
    ]
    finished = [record for record in rescored if record.state == "done"]
    if finished and (
        finding := _find_regression(run_context, champion, finished[-1], config.regression_alpha)
    ):
        benchmark, regression = finding
        key = f"regression-{champion.checkpoint_hash[:16]}-{benchmark}"
        # The sensor `degraded_champion` shares cooldown and budget.
        starts = sorted([*started_at, *started(context.instance, "degraded")])
        if reason := wait_reason(run_context, starts, time.time(), config):
            return dg.SensorResult(skip_reason=f"{regression.reason} A retraining waits: {reason}.")
        earlier = attempts(context.instance, key)
        if not earlier or not refusal(run_context, earlier, once=True):
            request = retraining(run_context, regression.reason, key, earlier, "regression")
            return request._replace(cursor=json.dumps([*started_at, time.time()]))
    if rescored and rescored[-1].state == "open":
        return dg.SensorResult(skip_reason=f"{rescored[-1].id} is being scored")
    last = max([champion.created_at, *(record.opened_at for record in rescored)])
    age_h = (time.time() - _timestamp(last)) / 3600
    if age_h < RESCORE_HOURS:
        return dg.SensorResult(
            skip_reason=(
                f"{champion.checkpoint} was scored {age_h:.1f} hours ago, next after "
                f"{RESCORE_HOURS} hours"
            )
        )
    name = f"rescore-{champion.checkpoint_hash[:8]}-{len(rescored) + 1}"
    tags = {"ratchet/why": "daily rescoring", "ratchet/kind": "rescore"}
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                run_key=name, job_name="evaluate_checkpoint", partition_key=name, tags=tags
            )
        ],
        dynamic_partitions_requests=[checkpoints.build_add_request([name])],
    )


def started(instance: dg.DagsterInstance, *causes: str) -> list[float]:
    """Return when the retrainings with these causes were started, in seconds since 1970, oldest
    first.
    """
    filters = dg.RunsFilter(tags={"ratchet/cause": list(causes)})
    records = instance.get_run_records(filters, limit=MAX_STARTS)
    return sorted(record.create_timestamp.timestamp() for record in records)


def wait_reason(
    run_context: RunContext, started_at: list[float], now: float, config: Automation
) -> str | None:
    """Return why no retraining can start now: a training, the month's budget, the cooldown or the
    daily number; None if one can.
    """
    if holder := lease.holder(run_context.home.lease):
        return f"{holder} trains"
    try:
        check_budget(run_context.as_settings, datetime.fromtimestamp(now, UTC))
    except NotReady as refusal:
        return str(refusal)
    today = [at for at in started_at if now - at < 86400]
    if len(today) >= config.retrainings_a_day:
        return f"{len(today)} were started in 24 hours, the budget is {config.retrainings_a_day}"
    if started_at and now - started_at[-1] < config.cooldown_hours * 3600:
        return (
            f"the last was started {(now - started_at[-1]) / 3600:.1f} hours ago, the cooldown is "
            f"{config.cooldown_hours:g} hours"
        )
    return None


def _find_regression(
    run_context: RunContext, champion: Entry, record: RunRecord, alpha: float
) -> tuple[str, Regression] | None:
    """Return the first benchmark on which this rescore is significantly worse than the score of the
    champion's promotion; None if there is none.
    """
    scorecards = _promotion_scorecards(run_context, champion)
    for name, after in read_scores(run_context.store.require("scores", record.id)).champion.items():
        if (
            name in scorecards
            and name not in ("validation", "regression")
            and scorecards[name].benchmark_version != after.benchmark_version
            and same_supply(scorecards[name], after)
        ):
            regression = regressed(scorecards[name], after, alpha)
            if regression.fell:
                return name, regression
    return None


def _promotion_scorecards(run_context: RunContext, champion: Entry) -> dict[str, Scorecard]:
    """Return the scorecards with which the champion was promoted or installed."""
    origin = next(
        e
        for e in run_context.ledger.history()
        if e.kind in ("install", "promote") and e.checkpoint_hash == champion.checkpoint_hash
    )
    scores = read_scores(run_context.store.require("scores", origin.run_id.removesuffix("/first")))
    return scores.champion if origin.kind == "install" else scores.challenger


def attempts(instance: dg.DagsterInstance, key: str) -> list[dg.RunRecord]:
    """Return the retrainings that were started for a cause, newest first."""
    return list(instance.get_run_records(dg.RunsFilter(tags={KEY: key}), limit=MAX_STARTS))


def _failed(attempt: dg.RunRecord) -> bool:
    return attempt.dagster_run.status is dg.DagsterRunStatus.FAILURE


def trained_since(run_context: RunContext, time_s: float) -> bool:
    """Return whether a pipeline run that began after this time, in seconds since 1970, reached its
    decision.
    """
    return any(
        record.kind == "pipeline"
        and record.state == "done"
        and _timestamp(record.opened_at) >= int(time_s)  # a record has whole seconds
        for record in readable(run_context.home.runs)
    )


def refusal(
    run_context: RunContext, earlier: Sequence[dg.RunRecord], *, once: bool = False
) -> str | None:
    """Return why no other retraining starts after these of the same cause; None if one does.

    once: a retraining that succeeded ends the cause.
    """
    run = earlier[0].dagster_run
    name = f"The retraining {run.tags.get(PARTITION, run.run_id[:8])}"
    if not run.is_finished:
        return f"{name} was started; it is {run.status.value.lower().replace('_', ' ')}."
    if run.status is dg.DagsterRunStatus.CANCELED:
        return f"{name} was stopped: none is started for this again. `ratchet train` starts one."
    if run.status is dg.DagsterRunStatus.SUCCESS:
        return f"{name} was started, and ended." if once else None
    starts = sorted(record.create_timestamp.timestamp() for record in earlier)
    config = run_context.profile.automation
    if reason := wait_reason(run_context, starts, time.time(), config):
        return f"{name} failed. Another one waits: {reason}; `ratchet train` starts one now."
    return None


def retraining(
    run_context: RunContext,
    why: str,
    key: str,
    earlier: Sequence[dg.RunRecord],
    cause: str = "",
) -> dg.SensorResult:
    """Return the request of a retraining. key: of its cause; earlier: of the same, newest first."""
    run = next_id(run_context.home.runs)
    tags = {"ratchet/why": why, KEY: key, **run_context.time_limit}
    tags |= {"ratchet/cause": cause} if cause else {}
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                run_key="-".join([key, *(record.dagster_run.run_id for record in earlier[:1])]),
                job_name=full_pipeline.name,
                partition_key=run,
                tags=tags,
            )
        ],
        dynamic_partitions_requests=[checkpoints.build_add_request([run])],
    )


def _timestamp(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()
