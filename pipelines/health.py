"""Whether a home is well: its champion, disk, daemon and last night.

In: the settings, Dagster's instance, the time. Out: findings; nothing is changed. `ratchet health`
prints them, for cron and for probes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

# they have no public names
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import InstigatorState, SensorInstigatorData

from artifacts.integrity import CorruptArtifact
from artifacts.pull import pull_champion
from pipelines.intervals import longest_interval
from resources import lease
from resources.finding import Finding, keep_findings
from resources.home import NotReady
from resources.registry.ledger import LedgerChanged, champion_of, named
from resources.registry.ledger_database import LedgerUnreachable, answered_within
from resources.settings import Settings

NIGHTLY = "nightly_retraining"
MINUTE = "%Y-%m-%d %H:%M"
PATIENCE_S = 5.0  # for the databases, in one check together
SILENT_S = 300.0  # a daemon's threads report every 30 seconds


def check(settings: Settings, instance: dg.DagsterInstance | str, now: datetime) -> list[Finding]:
    """Return the findings, and keep them for `ratchet status`.

    instance: or why it cannot be used.
    """
    with answered_within(PATIENCE_S):
        found = list(findings(settings, instance, now))
    keep_findings(settings.home.path, found, now)
    return found


def findings(
    settings: Settings, instance: dg.DagsterInstance | str, now: datetime
) -> Iterator[Finding]:
    """Yield a finding for each part. instance: or why it cannot be used."""
    yield _champion(settings)
    yield disk(settings)
    yield _training(settings, now)
    if isinstance(instance, str):
        found, _, fix = instance.rpartition(": ")
        yield Finding("daemon", f"unknown: {found}", fix, blocks=True)
    else:
        yield _daemon(settings, instance, now)
        yield from _nights(settings, instance, now)
    if settings.profile.storage.backup:
        yield _backup(settings, now)


def _champion(settings: Settings) -> Finding:
    """The ledger can be read, and the champion's files are those that it names."""
    try:
        champion = champion_of(settings.history)
        if champion is None:
            return Finding("champion", "none yet", "`ratchet demo` makes the first")
        folder = Path(champion.path)
        known = folder.with_name(f".{folder.name}.files.json")
        pull_champion(settings.store, folder, champion.checkpoint_hash, known)
    except (CorruptArtifact, LedgerChanged, LedgerUnreachable) as error:
        found, _, fix = str(error).rpartition(": ")
        return Finding("champion", found, fix, blocks=True)
    return Finding("champion", f"{named(champion)}, whole")


def disk(settings: Settings) -> Finding:
    """A run fits on the disk."""
    needed = settings.profile.needs.disk_gib
    try:
        settings.home.check_capacity(disk_gib=needed, memory_gib=0.0)
    except NotReady as error:
        found, _, fix = str(error).rpartition(": ")
        return Finding("disk", found, f"{fix}; `ratchet gc` removes what nothing names", True)
    return Finding("disk", f"at least {needed:g} GiB free, what a run needs")


def _training(settings: Settings, now: datetime) -> Finding:
    """A training makes progress: one of its files has changed lately. Those of another host are not
    here.
    """
    try:
        holder = lease.holder(settings.home.lease)
    except LedgerUnreachable as error:
        if settings.home.database:  # the finding about the champion says why
            return Finding("training", "unknown: the database of the lease cannot be used")
        found, _, fix = str(error).rpartition(": ")
        return Finding("training", f"unknown: {found}", fix, blocks=True)
    if not holder:
        return Finding("training", "none")
    folder, hours = settings.home.runs / holder.run_id, settings.profile.automation.silent_hours
    files = [folder, *folder.glob("*"), *folder.glob("training/*/*")]
    changed = max((file.stat().st_mtime for file in files if file.exists()), default=None)
    quiet_s = now.timestamp() - changed if changed else 0.0
    if quiet_s < hours * 3600:
        return Finding("training", str(holder))
    fix = "`ratchet jobs logs` shows its log, `ratchet jobs stop` ends it; the next run resumes it"
    return Finding("training", f"{holder}: no sign for {quiet_s / 3600:.1f} hours", fix, True)


def _daemon(settings: Settings, instance: dg.DagsterInstance, now: datetime) -> Finding:
    """The daemon has reported lately. One that never ran counts only with `automation.retrain`."""
    fix = "start `ratchet ui`, which runs the daemon"
    quiet = daemon_silence_s(instance, now)
    if not quiet:
        expected = settings.profile.automation.retrain
        return Finding("daemon", "none has run in this home", fix if expected else "", expected)
    name, seconds = max(quiet.items(), key=lambda each: each[1])
    text = f"{name} reported {seconds / 60:.0f} min ago"
    silent = seconds > SILENT_S
    return Finding("daemon", text, fix if silent else "", blocks=silent)


def daemon_silence_s(instance: dg.DagsterInstance, now: datetime) -> dict[str, float]:
    """Map the threads of the daemon, and "the last sensor" since its next run was due, to the
    seconds since their last sign. Empty if no daemon ever ran.

    A daemon that cannot reach the definitions still reports, but runs no sensor.
    """
    beats = instance.get_daemon_heartbeats()
    quiet = {
        name.lower().replace("_", " "): now.timestamp() - beat.timestamp
        for name, beat in beats.items()
    }
    states = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
    data = [state.instigator_data for state in states if state.is_running]
    due = [
        each.last_tick_start_timestamp + (each.min_interval or 0)
        for each in data
        if isinstance(each, SensorInstigatorData) and each.last_tick_start_timestamp
    ]
    if quiet and due:  # the latest: a sensor that the project no longer has stays behind
        quiet["the last sensor"] = now.timestamp() - max(due)
    return quiet


def _nights(settings: Settings, instance: dg.DagsterInstance, now: datetime) -> Iterator[Finding]:
    """The last nightly retraining succeeded, and none is missing while the schedule is on."""
    automation = settings.profile.automation
    states = [s for s in instance.all_instigator_state() if s.instigator_name == NIGHTLY]
    if not (states[0].is_running if states else automation.retrain):
        yield Finding("last night", "the nightly retraining is off")
        return
    runs = instance.get_run_records(dg.RunsFilter(tags={"dagster/schedule_name": NIGHTLY}), limit=1)
    since = _switched_on(states)
    if runs:
        run, began = runs[0].dagster_run, runs[0].create_timestamp.astimezone(UTC)
        state = run.status.value.lower().replace("_", " ")
        text = f"{run.tags.get('dagster/partition', run.run_id[:8])} of {began:{MINUTE}}: {state}"
        failed = run.status is dg.DagsterRunStatus.FAILURE
        yield Finding("last night", text, "see its page in `ratchet ui`" if failed else "", failed)
        since = max(began, since or began)
    else:
        yield Finding("last night", "no night has been yet")
    if since:
        missing = now - since > 1.5 * longest_interval(automation.nightly)
        text = f"none since {since:{MINUTE}}" if missing else "not missing"
        fix = "see the schedule's ticks in `ratchet ui`" if missing else ""
        yield Finding("next night", text, fix, blocks=missing)


def _switched_on(states: Sequence[InstigatorState]) -> datetime | None:
    """Return since when the schedule is on, as far as the daemon has recorded it."""
    started = [getattr(state.instigator_data, "start_timestamp", None) for state in states]
    return datetime.fromtimestamp(started[0], UTC) if started and started[0] else None


def _backup(settings: Settings, now: datetime) -> Finding:
    """The place that the profile names has a backup, and none is missing."""
    from artifacts.folder import Folder
    from resources.backup.index import ids, made_at

    storage = settings.profile.storage
    try:
        known = ids(Folder(storage.backup))
    except Exception as error:  # each kind of storage has its own
        why = " ".join(str(error).split()) or type(error).__name__
        return Finding("backup", f"{storage.backup}: {why}", "see that it can be reached", True)
    fix = "run `ratchet backup`, and see whether its cron job did"
    if not known:
        return Finding("backup", f"none in {storage.backup}", fix, blocks=True)
    hours = (now - made_at(known[-1])).total_seconds() / 3600
    late = hours > storage.backup_hours
    text = f"{known[-1]}, {hours:.1f} hours ago"
    return Finding("backup", text, fix if late else "", blocks=late)
