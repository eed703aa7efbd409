"""What the gateway counts, in Prometheus' form (`/metrics`).

Labels are versions, arms and kinds of errors: never a prompt, a key or a user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from serving.gateway.observations import Observation
from serving.gateway.pool import VersionPool
from serving.gateway.routing import Router

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The gateway's counters, in Prometheus' form.

    lost: returns how many observations and votes could not be written.
    """

    def __init__(self, pool: VersionPool, router: Router, lost: Callable[[], int]) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        version = ["version", "arm"]
        self.requests = Counter(
            "ratchet_requests", "Answered requests.", [*version, "error"], registry=self.registry
        )
        self.tokens = Counter(
            "ratchet_tokens", "Tokens.", [*version, "kind"], registry=self.registry
        )
        self.first_token = Histogram(
            "ratchet_first_token_seconds", "Seconds until the first token.", version,
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.total = Histogram(
            "ratchet_request_seconds", "Seconds of a whole answer.", version,
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.refused = Counter(
            "ratchet_refused", "Requests without an answer, by code.", ["code"],
            registry=self.registry,
        )  # fmt: skip
        self.verified = Counter(
            "ratchet_verified", "Requests with tests: the first candidate passed, another one "
            "did, or none.", ["outcome"], registry=self.registry,
        )  # fmt: skip
        unwritten = Gauge(
            "ratchet_observations_lost", "Observations and votes that could not be written.",
            registry=self.registry,
        )  # fmt: skip
        unwritten.set_function(lost)
        self.registry.register(_Versions(pool))
        self.registry.register(_Traffic(router))
        self._labelled = cache(_labelled)

    def observe(self, row: Observation) -> None:
        of, labels = self._labelled, (row.version, "shadow" if row.shadow else row.arm)
        of(self.requests, *labels, row.error).inc()
        if row.error == "unavailable":
            return  # it took no time
        of(self.tokens, *labels, "prompt").inc(row.prompt_tokens)
        of(self.tokens, *labels, "completion").inc(row.completion_tokens)
        of(self.total, *labels).observe(row.total_s)
        if row.first_token_s is not None:
            of(self.first_token, *labels).observe(row.first_token_s)

    def refuse(self, code: str) -> None:
        """Count a request without an answer."""
        self.refused.labels(code).inc()

    def page(self) -> bytes:
        from prometheus_client import generate_latest

        return generate_latest(self.registry)


def _labelled(metric: Any, *labels: object) -> Any:
    """Return the metric with these labels. A look-up costs more than the counting itself."""
    return metric.labels(*labels)


class _Versions:
    """State of the loaded versions at the time of a scrape."""

    def __init__(self, pool: VersionPool) -> None:
        self.pool = pool

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        running = GaugeMetricFamily("ratchet_running", "Requests that run.", labels=["version"])
        queued = GaugeMetricFamily("ratchet_queued", "Requests that wait.", labels=["version"])
        opened = GaugeMetricFamily(
            "ratchet_breaker", "0 closed, 1 half-open, 2 open.", labels=["version"]
        )
        for version, loaded in self.pool.loaded.items():
            running.add_metric([str(version)], loaded.admission.running)
            queued.add_metric([str(version)], loaded.admission.queued)
            states = ("closed", "half-open", "open")
            opened.add_metric([str(version)], states.index(loaded.breaker.state))
        return iter((running, queued, opened))


class _Traffic:
    """Which versions answer at the time of a scrape; nothing without a champion."""

    def __init__(self, router: Router) -> None:
        self.router = router

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        champion = GaugeMetricFamily("ratchet_serving_champion", "Version that answers.")
        share = GaugeMetricFamily("ratchet_arm_share", "Share of traffic.", labels=["version"])
        released = GaugeMetricFamily("ratchet_release_open", "1 while a release runs here.")
        with suppress(LookupError):
            versions = self.router.versions()
            shares: Mapping[int, float] = getattr(self.router, "shares", {})
            champion.add_metric([], versions[0])
            released.add_metric([], bool(shares))
            rest = {versions[0]: 1 - sum(shares.values())}
            for version, part in (rest | dict(shares)).items():
                share.add_metric([str(version)], part)
        return iter((champion, share, released))
