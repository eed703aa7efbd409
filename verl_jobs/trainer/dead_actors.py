"""Which Ray processes of a training died under it. verl does not always notice: without the worker that writes its answers it waits for ever."""

from __future__ import annotations

import time
from typing import Any

from sandbox.backends.ray import Place

KNOWN_S = 30.0  # Ray's head knows of a node that is gone after five missed looks, three seconds apart, and of a process on a live one at once
UNASKED = (
    "WORKER_DIED",
    "NODE_DIED",
)  # beside RAY_KILL, REF_DELETED, OUT_OF_SCOPE, ... (Ray's ActorDiedErrorContext)
REPLACED = (
    Place.__name__,
)  # classes whose dead their owner replaces: the sandbox's, with `sandbox.backend: ray`


def died() -> list[str]:
    """Actors of this process's Ray job, by class and process, that ended though nobody ended them, and that nobody replaces."""
    import ray
    from ray._private.state import (
        state,
    )  # the public list_actors goes through the dashboard, and gave nothing with Ray's token on (2.60)

    job = ray.JobID.from_hex(ray.get_runtime_context().get_job_id())
    dead = state.actor_table(None, job_id=job, actor_state_name="DEAD").values()
    missed = [
        actor
        for actor in dead
        if actor["ActorClassName"] not in REPLACED and _reason(actor["DeathCause"]) in UNASKED
    ]
    return [f"{actor['ActorClassName']} (process {actor['Pid']})" for actor in missed]


def died_with(within_s: float = KNOWN_S) -> list[str]:
    """The same where an error came first: a rank whose peer on another node is gone says so before Ray knows of the death."""
    import ray

    within_s = within_s if len(ray.nodes()) > 1 else 0.0
    deadline = time.monotonic() + within_s
    while not (gone := died()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return gone


def _reason(cause: Any) -> str:
    context = cause.actor_died_error_context
    return (
        str(type(context).Reason.Name(context.reason))
        if cause.HasField("actor_died_error_context")
        else ""
    )
