"""Detection of a training's Ray processes that died.

verl does not always notice: without its rollout worker it waits forever.
"""

from __future__ import annotations

import time
from typing import Any

from sandbox.backends.ray import RayWorker

# Ray's head detects a lost node after five missed checks, three seconds apart, and a process on a
# live node immediately
DETECTION_S = 30.0
# other values: RAY_KILL, REF_DELETED, OUT_OF_SCOPE, ... (Ray's ActorDiedErrorContext)
UNEXPECTED = (
    "WORKER_DIED",
    "NODE_DIED",
)
# classes whose owner replaces dead actors: the sandbox's, with `sandbox.backend: ray`
REPLACED = (RayWorker.__name__,)


def dead_actors() -> list[str]:
    """Return the class and process of this Ray job's actors that died unexpectedly.

    Actors that were ended on purpose, or that are replaced by their owner, are left out.
    """
    import ray

    # the public list_actors uses the dashboard, which returned nothing with Ray's token on (2.60)
    from ray._private.state import (
        state,
    )

    job = ray.JobID.from_hex(ray.get_runtime_context().get_job_id())
    dead = state.actor_table(None, job_id=job, actor_state_name="DEAD").values()
    unexpected = [
        actor
        for actor in dead
        if actor["ActorClassName"] not in REPLACED and _reason(actor["DeathCause"]) in UNEXPECTED
    ]
    return [f"{actor['ActorClassName']} (process {actor['Pid']})" for actor in unexpected]


def wait_for_dead_actors(within_s: float = DETECTION_S) -> list[str]:
    """Return `died()`, waiting up to `within_s` for Ray to notice a death.

    For use after an error: a rank that loses its peer on another node fails before Ray knows of the
    death.
    """
    import ray

    within_s = within_s if len(ray.nodes()) > 1 else 0.0
    deadline = time.monotonic() + within_s
    while not (dead := dead_actors()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return dead


def _reason(cause: Any) -> str:
    context = cause.actor_died_error_context
    return (
        str(type(context).Reason.Name(context.reason))
        if cause.HasField("actor_died_error_context")
        else ""
    )
