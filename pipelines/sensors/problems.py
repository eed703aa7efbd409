"""Sensors for new problems: files in the inbox, and new commits of datasets on the hub.

Both only write to `sources.json`; the sensor `changed_problems` then starts one retraining.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

import dagster as dg

from assets.partitions import sources
from assets.raw_problems import problem_sources
from pipelines.sensors.sensor import sensor
from problems.catalogue import current_commit, pin, read_sources
from problems.columns import ProblemError
from problems.reading.place import Place
from resources.problem_intake import fingerprint, import_problems, waiting
from resources.run_context import RunContext

TIMEOUT_S = 30.0  # for all requests of one tick


@sensor()
def new_problems(context: dg.SensorEvaluationContext, run_context: RunContext) -> dg.SensorResult:
    """Adds a file in `inbox_problems/` as a source when it has not changed between two ticks; once
    for each content. Reports a bad file once.
    """
    seen: dict[str, str] = json.loads(context.cursor or "{}")
    now: dict[str, str] = {}  # file -> fingerprint, with " done" after it was added
    messages: list[str] = []
    events: list[dg.AssetObservation] = []
    for file in waiting(run_context.home):
        state, before = fingerprint(file), seen.get(str(file))
        now[str(file)] = f"{state} done" if before in (state, f"{state} done") else state
        if before != state:
            continue  # it may still be written, or has been added
        try:
            intake = import_problems(run_context.home, file)
        except ProblemError as error:
            messages.append(f"refused: {error}")
            context.log.error(str(error))
            continue
        messages.append(
            f"{file.name}: added as source {intake.source}"
            if intake.new
            else f"{file.name}: source {intake.source} already has this content"
        )
        rows = {"problems_looked_at": intake.problems, "rejected": "\n".join(intake.rejected[:20])}
        events.append(
            _observation(intake.source, {"put_at": str(file), "lies_at": str(intake.place)} | rows)
        )
    return _result(
        events, "; ".join(messages) or f"{len(now)} files, no new complete one", json.dumps(now)
    )


@sensor()
def changed_hub(context: dg.SensorEvaluationContext, run_context: RunContext) -> dg.SensorResult:
    """Gets the newest commit of each hub dataset every `automation.hub_hours`; the next data
    refresh reads a changed one.
    """
    followed = {
        name: place
        for name, place in read_sources(run_context.home.path).items()
        if _follows_branch(place)
    }
    if not followed:
        return dg.SensorResult(skip_reason="no source follows a hub dataset")
    hours, last = run_context.profile.automation.hub_hours, float(context.cursor or 0)
    if (age := (time.time() - last) / 3600) < hours:
        return dg.SensorResult(
            skip_reason=f"last check {age:.1f} hours ago, next after {hours:g} hours",
            cursor=context.cursor,
        )
    messages: list[str] = []
    events: list[dg.AssetObservation] = []
    start = time.monotonic()
    for name, place in followed.items():
        if time.monotonic() - start > TIMEOUT_S:
            messages.append(f"{name}: not checked, the hub is slow; the next check covers it")
            continue
        try:
            commit = current_commit(name, place)
        except ProblemError as error:
            messages.append(str(error))
            continue
        if commit != place.commit:
            pin(run_context.home.path, name, commit)
            messages.append(f"{name}: new commit {commit[:12]}")
            events.append(
                _observation(name, {"commit": commit, "before": place.commit or "not noted"})
            )
    return _result(
        events, "; ".join(messages) or f"{', '.join(followed)}: no new commit", str(time.time())
    )


def _follows_branch(place: Place) -> bool:
    """Return whether the place is a hub dataset that the user did not pin to a commit."""
    return place.path is None and not re.fullmatch(r"[0-9a-f]{40}", place.revision or "")


def _observation(name: str, metadata: dict[str, Any]) -> dg.AssetObservation:
    return dg.AssetObservation(problem_sources.key, partition=name, metadata=metadata)


def _result(events: list[dg.AssetObservation], message: str, cursor: str) -> dg.SensorResult:
    """Return a result without run requests; the events appear at each source's partition."""
    names = [str(event.partition) for event in events]
    return dg.SensorResult(
        skip_reason=message,
        cursor=cursor,
        asset_events=events,
        dynamic_partitions_requests=[sources.build_add_request(names)] if names else [],
    )
