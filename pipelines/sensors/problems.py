"""Sensors for new problems: files in the inbox, and new commits of datasets on the hub.

Both only write to `sources.json`; `changed_problems` sees the change and starts one retraining.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

import dagster as dg

from assets.partitions import sources
from assets.raw_problems import problem_sources
from pipelines.settings import SETTINGS
from problems.catalogue import current_commit, pin, read_sources
from problems.columns import ProblemError
from problems.sources.place import Place
from resources.problem_intake import fingerprint, take_in, waiting
from resources.run_context import RunContext

EVERY_S = SETTINGS.profile.automation.poll_s
RUNNING = dg.DefaultSensorStatus.RUNNING
PATIENCE_S = 30.0  # of one look, for all answers of the hub together


@dg.sensor(minimum_interval_seconds=EVERY_S, default_status=RUNNING)
def new_problems(context: dg.SensorEvaluationContext, run_context: RunContext) -> dg.SensorResult:
    """A file in `inbox_problems/` becomes a source once it has not changed between two ticks, once
    for each content; a bad one is refused once.
    """
    seen: dict[str, str] = json.loads(context.cursor or "{}")
    now: dict[str, str] = {}  # file -> fingerprint, and whether it was dealt with like this
    said: list[str] = []
    events: list[dg.AssetObservation] = []
    for file in waiting(run_context.home):
        state, before = fingerprint(file), seen.get(str(file))
        now[str(file)] = f"{state} done" if before in (state, f"{state} done") else state
        if before != state:
            continue  # new or still being copied, to be looked at again; or dealt with already
        try:
            taken = take_in(run_context.home, file)
        except ProblemError as error:
            said.append(f"refused: {error}")
            context.log.error(str(error))
            continue
        said.append(
            f"{file.name} is the source {taken.source}"
            if taken.new
            else f"{file.name} is the source {taken.source} as it was"
        )
        rows = {"problems_looked_at": taken.problems, "rejected": "\n".join(taken.rejected[:20])}
        events.append(
            _observed(taken.source, {"put_at": str(file), "lies_at": str(taken.place)} | rows)
        )
    return _noted(
        events, "; ".join(said) or f"{len(now)} files, none of them new and still", json.dumps(now)
    )


@dg.sensor(minimum_interval_seconds=EVERY_S, default_status=RUNNING)
def changed_hub(context: dg.SensorEvaluationContext, run_context: RunContext) -> dg.SensorResult:
    """Asks the hub, every `automation.hub_hours`, for the commit of its sources; the next run reads
    a new one.
    """
    followed = {
        name: place for name, place in read_sources(run_context.home.path).items() if _moves(place)
    }
    if not followed:
        return dg.SensorResult(skip_reason="no source is a dataset of the hub that could move")
    hours, last = run_context.profile.automation.hub_hours, float(context.cursor or 0)
    if (age := (time.time() - last) / 3600) < hours:
        return dg.SensorResult(
            skip_reason=f"the hub was asked {age:.1f} hours ago, the next time is after {hours:g}",
            cursor=context.cursor,
        )
    said: list[str] = []
    events: list[dg.AssetObservation] = []
    start = time.monotonic()
    for name, place in followed.items():
        if time.monotonic() - start > PATIENCE_S:
            said.append(f"{name}: not asked, the hub is slow")
            continue
        try:
            commit = current_commit(name, place)
        except ProblemError as error:
            said.append(str(error))
            continue
        if commit != place.commit:
            pin(run_context.home.path, name, commit)
            said.append(f"{name} is at {commit[:12]} now")
            events.append(
                _observed(name, {"commit": commit, "before": place.commit or "not noted"})
            )
    return _noted(
        events, "; ".join(said) or f"{', '.join(followed)}: nothing new", str(time.time())
    )


def _moves(place: Place) -> bool:
    """Of the hub, and not at a commit that the user named."""
    return place.path is None and not re.fullmatch(r"[0-9a-f]{40}", place.revision or "")


def _observed(name: str, metadata: dict[str, Any]) -> dg.AssetObservation:
    return dg.AssetObservation(problem_sources.key, partition=name, metadata=metadata)


def _noted(events: list[dg.AssetObservation], said: str, cursor: str) -> dg.SensorResult:
    """No run is asked for here; what was found shows at the source's partition."""
    names = [str(event.partition) for event in events]
    return dg.SensorResult(
        skip_reason=said,
        cursor=cursor,
        asset_events=events,
        dynamic_partitions_requests=[sources.build_add_request(names)] if names else [],
    )
