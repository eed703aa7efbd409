"""State of a home in Prometheus' form, read again for each scrape.

In: the settings, Dagster's instance, the time. Out: metric families; `ratchet metrics` serves them.
Labels are names of parts, kinds and states: never a problem, a program or a user.
"""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, get_args

import dagster as dg
from dagster._core.scheduler.instigation import TickStatus  # it has no public name

from artifacts.integrity import CorruptArtifact
from pipelines.health import NIGHTLY, PATIENCE_S, daemon_silence_s, findings
from pipelines.instance import unreachable
from pipelines.watch.view import REWARD
from resources import lease
from resources.cost import Total, costs, month_of
from resources.registry.ledger import LedgerChanged, champions
from resources.registry.ledger_database import LedgerUnreachable, answered_within
from resources.registry.releases import Releases, State
from resources.settings import Settings
from rewards.watch import LOST
from sandbox.verdict import Verdict
from verl_jobs import samples
from verl_jobs.job import TrainingJob, metrics

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

TICKS = timedelta(hours=1)  # in which failed ticks count
STEPS = 5  # newest steps whose verdicts count
WAITING = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED]
RUNNING = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]
DAMAGED = (CorruptArtifact, LedgerChanged, LedgerUnreachable)  # which a finding tells of


class HomeCollector:
    """A collector of prometheus-client over one home."""

    def __init__(self, settings: Settings, instance: dg.DagsterInstance) -> None:
        self.settings, self.instance = settings, instance

    def collect(self) -> list[GaugeMetricFamily]:
        """Return all families as of now."""
        with answered_within(PATIENCE_S):
            return list(self._families(datetime.now(UTC)))

    def _families(self, now: datetime) -> Iterator[GaugeMetricFamily]:
        away = unreachable(self.settings.profile.orchestration)
        each_part = findings(self.settings, away or self.instance, now)
        found = {each.part: each.blocks for each in each_part}
        parts = dict.fromkeys(("last night", "next night", "backup"), False) | found
        yield _family("unwell", "1 for a part that `ratchet health` finds not well.", "part", parts)
        with contextlib.suppress(*DAMAGED):
            yield from self._ledger()
        if not away:
            yield from self._dagster(now)
        yield from self._disk()
        with contextlib.suppress(*DAMAGED):
            yield from self._training(now)
            yield from self._cost(now)

    def _ledger(self) -> Iterator[GaugeMetricFamily]:
        history = self.settings.history
        stack = champions(history)
        yield _family("champion_version", "Version of the champion, 0 without one.", "", {
            "": stack[-1].version if stack else 0
        })  # fmt: skip
        since = datetime.fromisoformat(stack[-1].created_at).timestamp() if stack else 0.0
        yield _family("champion_since_seconds", "When it became champion.", "", {"": since})
        kinds = Counter(entry.kind for entry in history)
        known = {kind: kinds[kind] for kind in ("install", "promote", "refuse", "rollback")}
        yield _family("decisions", "Entries of the ledger.", "kind", known)
        releases = Releases(self.settings.ledger.place).all()
        now = releases[-1].state if releases else None
        states = {state: int(state == now) for state in get_args(State)}
        yield _family("release_state", "1 for the state of the newest release.", "state", states)

    def _dagster(self, now: datetime) -> Iterator[GaugeMetricFamily]:
        instance = self.instance
        counts = {
            "waiting": instance.get_runs_count(dg.RunsFilter(statuses=WAITING)),
            "running": instance.get_runs_count(dg.RunsFilter(statuses=RUNNING)),
        }
        yield _family("runs", "Runs of Dagster that have not ended.", "state", counts)
        nights = dg.RunsFilter(tags={"dagster/schedule_name": NIGHTLY})
        began = [each.create_timestamp for each in instance.get_run_records(nights, limit=1)]
        at = began[0].timestamp() if began else 0.0
        yield _family("last_night_seconds", "When the last nightly retraining began.", "", {"": at})
        quiet = max(daemon_silence_s(instance, now).values(), default=-1.0)
        text = "Seconds since the oldest sign of the daemon's threads; -1 if none ever ran."
        yield _family("daemon_silent_seconds", text, "", {"": quiet})
        since = (now - TICKS).timestamp()
        failed = {
            state.name: len(
                instance.get_ticks(
                    state.instigator_origin_id, state.selector_id, after=since,
                    statuses=[TickStatus.FAILURE],
                )
            )
            for state in instance.all_instigator_state()
        }  # fmt: skip
        text = "Failed ticks of sensors and schedules within an hour."
        yield _family("failed_ticks", text, "name", failed or {"none": 0})

    def _disk(self) -> Iterator[GaugeMetricFamily]:
        free = shutil.disk_usage(self.settings.home.path).free
        yield _family("disk_free_bytes", "Free disk space under the home.", "", {"": free})
        needed = self.settings.profile.needs.disk_gib * 2**30
        yield _family("disk_needed_bytes", "Free disk space that a run needs.", "", {"": needed})

    def _training(self, now: datetime) -> Iterator[GaugeMetricFamily]:
        """The running training, else the newest one."""
        holder = lease.holder(self.settings.home.lease)
        since = holder and datetime.fromisoformat(holder.since).replace(tzinfo=UTC)
        age = (now - since).total_seconds() if since else 0.0
        yield _family("lease_age_seconds", "Age of the training's lease; 0 without one.", "", {
            "": age
        })  # fmt: skip
        files = list(self.settings.home.runs.folder.glob("*/training/*/job.json"))
        if not files:
            return
        file = max(files, key=lambda each: each.stat().st_mtime)
        with contextlib.suppress(*DAMAGED):
            job, history = TrainingJob.read(file), metrics(file.parent)
            steps = job.training.steps
            yield _family("training_steps", "Steps of the newest training.", "", {"": steps})
            done = history[-1]["step"] if history else 0
            yield _family("training_step", "Last step of the newest training.", "", {"": done})
            reward = next((row[REWARD] for row in history[::-1] if REWARD in row), float("nan"))
            yield _family("training_reward", "Mean reward of that step.", "", {"": reward})
            yield from _verdicts(job, history)

    def _cost(self, now: datetime) -> Iterator[GaugeMetricFamily]:
        total = Total.of(costs(self.settings, now, month_of(now)))
        usage, cost = total.usage, self.settings.profile.cost
        yield _family("cost_month", "Cost of this month's runs.", "", {"": total.price})
        yield _family("cost_budget", "Budget of a month; 0: none.", "", {"": cost.budget})
        yield _family("cost_warn_at", "Share of the budget from which people are warned.", "", {
            "": cost.warn_at
        })  # fmt: skip
        hours = {"machine": usage.hours, "gpu": usage.gpu, "core": usage.cpu, "gib": usage.memory}
        yield _family("hours_month", "Hours of this month's runs.", "of", hours)


def _verdicts(job: TrainingJob, history: list[dict[str, Any]]) -> Iterator[GaugeMetricFamily]:
    """The sandbox' verdicts on the completions of the training's newest steps. A completion that it
    failed to judge is in no sample.
    """
    counts: Counter[str] = Counter()
    for step in (newest := samples.steps(job.path)[-STEPS:]):
        counts.update(sample.verdict for sample in samples.read(job.path, step))
    lost = sum(row.get(LOST) or 0.0 for row in history if row["step"] in newest)
    by_kind = {verdict.value: counts[verdict.value] for verdict in Verdict}
    by_kind[Verdict.INFRA.value] += int(lost)
    yield _family("verdicts", f"Verdicts of the newest {STEPS} steps.", "verdict", by_kind)
    share = by_kind[Verdict.INFRA.value] / max(1, sum(by_kind.values()))
    yield _family("infra_share", "Share of them that the sandbox failed to give.", "", {"": share})


def _family(name: str, text: str, label: str, values: dict[str, Any]) -> GaugeMetricFamily:
    """Return a gauge. label: name of its one label; empty: it has none."""
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(f"ratchet_{name}", text, labels=[label] if label else [])
    for key, value in values.items():
        family.add_metric([key] if label else [], float(value))
    return family
