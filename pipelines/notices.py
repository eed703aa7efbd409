"""Notices for people: read from the ledger, the releases, Dagster's history and the
findings about the home, so that a lost process loses no message.

In: the settings, Dagster's instance, the time. Out: all notices that hold now; resources/notify.py
sends each once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._core.scheduler.instigation import InstigatorState, TickStatus  # no public name

from artifacts.integrity import CorruptArtifact
from pipelines.health import NIGHTLY, check, disk
from resources.config.notify import EVENTS, Event
from resources.cost import spent_in
from resources.finding import Finding
from resources.notify import deliver, send
from resources.outbox import Notice
from resources.registry.ledger import LedgerChanged
from resources.registry.ledger_database import LedgerUnreachable
from resources.registry.releases import Releases
from resources.run_context import KEY, PARTITION
from resources.settings import Settings

UNREACHABLE = "DagsterUserCodeUnreachableError"
NO_CODE = (
    "no sensor and no schedule works",
    "Dagster cannot reach the process with Ratchet's code, which has ended or is overloaded: if it "
    "stays so, start `ratchet ui` again.",
)
DAYS = 7  # failed runs, skipped nights and retrainings that are older are left out
LIMIT = 100  # runs, and ticks of a schedule, that are read
DECISIONS: dict[str, tuple[Event, str]] = {  # kind of a ledger's entry -> event, title
    "install": ("promotion", "{} is the first champion"),
    "promote": ("promotion", "{} is champion"),
    "refuse": ("refusal", "{} was refused"),
    "rollback": ("rollback", "{} is champion again"),
}
PARTS: dict[str, Event] = {  # part of a finding -> event
    "champion": "champion",
    "disk": "disk",
    "training": "hung_training",
    "daemon": "silent_daemon",
    "next night": "missing_night",
    "backup": "missing_backup",
}


def send_due(
    settings: Settings, instance: dg.DagsterInstance, now: datetime
) -> tuple[int, list[str]]:
    """Send what holds now and was not sent yet. Return how many messages were sent, and a sentence
    for each receiver that could not be reached.
    """
    return deliver(settings, list(notices(settings, instance, now)), now.timestamp())


def send_without_dagster(settings: Settings, why: str, now: datetime) -> tuple[int, list[str]]:
    """Send that Dagster's records cannot be read, and that the disk is full if that is why."""
    away = Notice("silent_daemon", "dagster", "Dagster's records cannot be read", why)
    return deliver(settings, [away, *_unwell([disk(settings)])], now.timestamp())


def send_tests(settings: Settings) -> list[str]:
    """Send each receiver one message of each of its events. Return why it could not be sent."""
    return [
        problem
        for receiver in settings.profile.notify.receivers
        for event in EVENTS
        if event in receiver.events
        and (problem := send(receiver, Notice(event, "", f"test of {event}", "Nothing happened.")))
    ]


def notices(settings: Settings, instance: dg.DagsterInstance, now: datetime) -> Iterator[Notice]:
    """Yield all notices that hold now. A record that cannot be read has a finding of its own."""
    after = now - timedelta(days=DAYS)
    with contextlib.suppress(CorruptArtifact, LedgerChanged, LedgerUnreachable):
        yield from _decisions(settings)
        yield from _budget(settings, now)
    yield from _failed_runs(instance, after)
    yield from _retrainings(instance, after)
    states = instance.all_instigator_state()
    failing = (notice for state in states for notice in _failing(instance, state))
    yield from {notice.key: notice for notice in failing}.values()
    for state in states:
        if state.instigator_name == NIGHTLY:
            yield from _skipped(instance, state, after)
    yield from _unwell(check(settings, instance, now))


def _unwell(found: Iterable[Finding]) -> Iterator[Notice]:
    for finding in found:
        if finding.blocks and (event := PARTS.get(finding.part)):
            text = f"{finding.found}. {finding.fix}".rstrip(". ")
            yield Notice(event, f"{finding.part} is not well", f"{finding.part} is not well", text)


def _decisions(settings: Settings) -> Iterator[Notice]:
    """Promotions, refusals and rollbacks. A release knows of its rollback before the ledger
    does.
    """
    releases = Releases(settings.ledger.place).all()
    for release in releases:
        if release.state == "rolled_back":
            text, at = " ".join(release.last.detail["reasons"]), release.last.time
            yield Notice("rollback", release.id, f"{release.id} was rolled back", text, at)
    known = {release.id for release in releases}
    for entry in settings.history:
        event, title = DECISIONS[entry.kind]
        if entry.run_id not in known:
            key = f"entry-{entry.entry}-{entry.checkpoint_hash[:12]}"
            named = title.format(f"version {entry.version} ({entry.checkpoint})")
            text = " ".join(entry.decision.get("reasons", ()))
            at = datetime.fromisoformat(entry.created_at).timestamp()
            yield Notice(event, key, named, text, at)


def _budget(settings: Settings, now: datetime) -> Iterator[Notice]:
    """The budget of this month is nearly spent, or spent."""
    cost, month = settings.profile.cost, f"{now.astimezone(UTC):%Y-%m}"
    if cost.budget and (spent := spent_in(settings, now)) >= cost.warn_at * cost.budget:
        state = "spent" if spent >= cost.budget else "nearly spent"
        text = f"{spent:.2f} of {cost.budget:g} (cost.budget of the profile)"
        title = f"the budget of {month} is {state}"
        yield Notice("budget", f"budget-{month}-{state}", title, text, now.timestamp())


def _failed_runs(instance: dg.DagsterInstance, after: datetime) -> Iterator[Notice]:
    filters = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=after)
    for record in instance.get_run_records(filters, limit=LIMIT):
        run = record.dagster_run
        if run.tags.get("dagster/will_retry") == "true":
            continue
        name = run.tags.get(PARTITION, run.run_id[:8])
        at = record.end_time or record.update_timestamp.timestamp()
        yield Notice(
            "failed_run", run.run_id, f"{run.job_name} of {name} failed", _why(instance, run), at
        )


def _why(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """Return the innermost cause of the first failed step, else the run's own message."""
    kinds = {dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE}
    for entry in instance.all_logs(run.run_id, of_type=kinds):
        event = entry.dagster_event
        if event and event.is_step_failure and (error := event.step_failure_data.error):
            while error.cause:
                error = error.cause
            return f"{event.step_key}: {' '.join(error.message.split())[:500]}"
        if event and event.message:
            return event.message
    return ""


def _retrainings(instance: dg.DagsterInstance, after: datetime) -> Iterator[Notice]:
    """Retrainings that sensors started. Dagster's own retries are left out."""
    for record in instance.get_run_records(dg.RunsFilter(created_after=after), limit=LIMIT):
        tags = record.dagster_run.tags
        if KEY in tags and "dagster/parent_run_id" not in tags:
            yield Notice(
                "retraining",
                f"opened-{record.dagster_run.run_id}",
                f"a retraining was opened: {tags.get(PARTITION, '')}",
                tags.get("ratchet/why", ""),
                record.create_timestamp.timestamp(),
            )


def _failing(instance: dg.DagsterInstance, state: InstigatorState) -> Iterator[Notice]:
    """A sensor or schedule that is on, and whose last tick failed."""
    ended = [TickStatus.SUCCESS, TickStatus.SKIPPED, TickStatus.FAILURE]
    origin, selector = state.instigator_origin_id, state.selector_id
    ticks = instance.get_ticks(origin, selector, limit=1, statuses=ended)
    if state.is_running and ticks and ticks[0].status is TickStatus.FAILURE:
        kind, name, error = state.instigator_type.value.lower(), state.name, ticks[0].error
        cause = " ".join(error.message.split())[:500] if error else ""
        if UNREACHABLE in cause:  # of all of them: one message
            yield Notice("failing_sensor", "failing-code", *NO_CODE)
            return
        yield Notice("failing_sensor", f"failing-{name}", f"the {kind} {name} fails", cause)


def _skipped(
    instance: dg.DagsterInstance, state: InstigatorState, after: datetime
) -> Iterator[Notice]:
    """Nights that the schedule skipped."""
    origin, selector = state.instigator_origin_id, state.selector_id
    since, skipped = after.timestamp(), [TickStatus.SKIPPED]
    for tick in instance.get_ticks(origin, selector, after=since, limit=LIMIT, statuses=skipped):
        night = f"{datetime.fromtimestamp(tick.timestamp, UTC):%Y-%m-%d %H:%M}"
        yield Notice(
            "skipped_night",
            f"skipped-{tick.timestamp:.0f}",
            f"the retraining of {night} was skipped",
            tick.skip_reason or "",
            tick.timestamp,
        )
