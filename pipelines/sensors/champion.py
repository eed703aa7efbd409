"""Sensors that score new checkpoints and start a retraining after changed problems or a regression
of the champion.

They look at the home's files, never at Dagster's events, so that a lost database loses no work;
`run_key` makes each cause start one run.
"""

import json
import time

import dagster as dg

from artifacts.hashing import hash_data
from assets.evaluation import read_scores
from assets.partitions import checkpoints
from evaluation.promotion.gate import Regression, regressed
from evaluation.scorecard import Scorecard
from pipelines.jobs import evaluate_checkpoint, full_chain
from pipelines.sensors.mlflow import mlflow_follows
from pipelines.sensors.problems import changed_hub, new_problems
from pipelines.sensors.stale_scores import stale_scores
from pipelines.settings import SETTINGS
from problems.catalogue import read_sources
from resources import lease
from resources.config.profile import Automation
from resources.intake import NoCheckpoint, fingerprint, take_in, waiting
from resources.registry.ledger import Entry
from resources.run_context import RunContext
from resources.run_record import Record, next_id, records

EVERY_S = SETTINGS.profile.automation.poll_s
RUNNING = dg.DefaultSensorStatus.RUNNING


@dg.sensor(job=evaluate_checkpoint, minimum_interval_seconds=EVERY_S, default_status=RUNNING)
def new_checkpoint(context: dg.SensorEvaluationContext, run_context: RunContext) -> dg.SensorResult:
    """A folder in `inbox/` is copied, hashed and scored once it has not changed between two ticks;
    once for each content.
    """
    seen: dict[str, str] = json.loads(context.cursor or "{}")
    now: dict[str, str] = {}  # folder -> fingerprint, and whether it was taken in like this
    requests, refused = [], []
    for folder in waiting(run_context.home):
        state, before = fingerprint(folder), seen.get(str(folder))
        now[str(folder)] = state if before not in (state, f"{state} taken") else f"{state} taken"
        if before != state:
            continue  # new or still being copied, to be looked at again; or taken in already
        try:
            made = take_in(run_context.store, folder)
        except NoCheckpoint as error:
            refused.append(str(error))
            context.log.error(str(error))
            continue
        tags = {"ratchet/why": f"put at {folder}", "ratchet/kind": "evaluation"}
        requests.append(
            dg.RunRequest(run_key=made.content_hash, partition_key=made.manifest.name, tags=tags)
        )
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None
        if requests
        else "; ".join(refused) or f"{len(now)} folders, none of them new and still",
        dynamic_partitions_requests=[
            checkpoints.build_add_request([str(request.partition_key) for request in requests])
        ]
        if requests
        else [],
        cursor=json.dumps(now),
    )


@dg.sensor(job=full_chain, minimum_interval_seconds=EVERY_S, default_status=RUNNING)
def changed_problems(
    context: dg.SensorEvaluationContext, run_context: RunContext
) -> dg.SensorResult:
    """If the sources differ from those of the last data refresh: refresh and retrain, once for each
    content.
    """
    made = run_context.store.current("datasets", "raw_problems")
    if made is None:
        return dg.SensorResult(
            skip_reason="no problems have been read yet: the first run reads them, "
            "e.g. `ratchet demo`"
        )
    if gone := [
        f"{name} ({at.path})"
        for name, at in read_sources(run_context.home.path).items()
        if at.path and not at.path.exists()
    ]:
        return dg.SensorResult(
            skip_reason=(
                f"nothing is there any more: {', '.join(gone)}; put it back, or `ratchet data "
                "add` it from another place"
            )
        )
    wanted = {name: place.content for name, place in read_sources(run_context.home.path).items()}
    changed = sorted(
        name
        for name in wanted.keys() | made.manifest.inputs.keys()
        if wanted.get(name) != made.manifest.inputs.get(name)
    )
    if not changed:
        return dg.SensorResult(skip_reason="the sources are those that were read last")
    if holder := lease.holder(run_context.home.lease):
        return dg.SensorResult(
            skip_reason=f"{', '.join(changed)} changed; waiting, for {holder} trains"
        )
    return _retrain(
        run_context,
        f"problems changed: {', '.join(changed)}",
        run_key=f"problems-{hash_data(wanted)}",
    )


@dg.sensor(
    jobs=[full_chain, evaluate_checkpoint], minimum_interval_seconds=EVERY_S, default_status=RUNNING
)
def champion_regression(
    context: dg.SensorEvaluationContext, run_context: RunContext
) -> dg.SensorResult:
    """Scores the champion on a fresh held-out draw each day; a significant fall starts a
    retraining, once for each champion and benchmark.
    """
    champion = run_context.ledger.champion()
    if champion is None:
        return dg.SensorResult(skip_reason="there is no champion yet")
    config, asked = (
        run_context.profile.automation,
        [float(at) for at in json.loads(context.cursor or "[]")],
    )
    rescored = [
        r
        for r in records(run_context.home.runs)
        if r.kind == "rescore"
        and r.champion
        and r.champion.content_hash == champion.checkpoint_hash
    ]
    done = [record for record in rescored if record.state == "done"]
    if done and (fall := _fall(run_context, champion, done[-1], config.regression_alpha)):
        benchmark, found = fall
        run_key = f"regression-{champion.checkpoint_hash[:16]}-{benchmark}"
        if reason := held_back(run_context, asked, time.time(), config):
            return dg.SensorResult(skip_reason=f"{found.reason} A retraining waits: {reason}.")
        if not context.instance.get_runs(dg.RunsFilter(tags={"dagster/run_key": run_key}), limit=1):
            request = _retrain(run_context, found.reason, run_key=run_key, cause="regression")
            return request._replace(cursor=json.dumps([*asked, time.time()]))
    if rescored and rescored[-1].state == "open":
        return dg.SensorResult(skip_reason=f"{rescored[-1].id} is being scored")
    last = max([champion.created_at, *(record.opened_at for record in rescored)])
    age_h = (time.time() - _seconds(last)) / 3600
    if age_h < config.rescore_hours:
        return dg.SensorResult(
            skip_reason=(
                f"{champion.checkpoint} was scored {age_h:.1f} hours ago, the next time is after "
                f"{config.rescore_hours:g}"
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


def held_back(
    run_context: RunContext, asked: list[float], now: float, config: Automation
) -> str | None:
    """Return why no retraining starts now (a training runs, the cooldown, the day's budget), or
    None.
    """
    if holder := lease.holder(run_context.home.lease):
        return f"{holder} trains"
    today = [at for at in asked if now - at < 86400]
    if len(today) >= config.retrainings_a_day:
        return f"{len(today)} were asked for in 24 hours, the budget is {config.retrainings_a_day}"
    if asked and now - asked[-1] < config.cooldown_hours * 3600:
        return (
            f"the last was asked for {(now - asked[-1]) / 3600:.1f} hours ago, the cooldown is "
            f"{config.cooldown_hours:g}"
        )
    return None


def _fall(
    run_context: RunContext, champion: Entry, record: Record, alpha: float
) -> tuple[str, Regression] | None:
    """The first benchmark on which the champion fell between its gate and this rescore."""
    gated = _gated_cards(run_context, champion)
    for name, after in read_scores(run_context.store.require("scores", record.id)).champion.items():
        if (
            name in gated
            and name not in ("validation", "regression")
            and gated[name].benchmark_version != after.benchmark_version
        ):
            found = regressed(gated[name], after, alpha)
            if found.fell:
                return name, found
    return None


def _gated_cards(run_context: RunContext, champion: Entry) -> dict[str, Scorecard]:
    """The scorecards with which it became champion."""
    origin = next(
        e
        for e in run_context.ledger.history()
        if e.kind in ("install", "promote") and e.checkpoint_hash == champion.checkpoint_hash
    )
    scores = read_scores(run_context.store.require("scores", origin.chain.removesuffix("/first")))
    return scores.champion if origin.kind == "install" else scores.challenger


def _retrain(run_context: RunContext, why: str, run_key: str, cause: str = "") -> dg.SensorResult:
    chain, tags = (
        next_id(run_context.home.runs),
        {"ratchet/why": why} | ({"ratchet/cause": cause} if cause else {}),
    )
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(run_key=run_key, job_name="full_chain", partition_key=chain, tags=tags)
        ],
        dynamic_partitions_requests=[checkpoints.build_add_request([chain])],
    )


def _seconds(iso: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(iso).timestamp()


SENSORS = [
    new_checkpoint,
    new_problems,
    changed_hub,
    changed_problems,
    champion_regression,
    stale_scores,
    mlflow_follows,
]
