"""A queue for each training: TransferQueue, in which verl keeps a step's prompts and answers, knows its controller by one name in a whole Ray.

Two trainings on one Ray (trials of a search, homes that share a cluster) would find each other's prompts, and the first to end would end the other's
queue. Here the name lies in a namespace of the Ray job's own. Imported by verl in every process of a run (verl_jobs/cpu/plugin.py).
"""

from __future__ import annotations

from typing import Any

import ray
from transfer_queue import interface


def own(namespace: str) -> str:
    """Asked when the name is used: a worker may have been started before it had a job."""
    return f"{namespace}-{ray.get_runtime_context().get_job_id()}"


class _Ray:
    """The module `ray`, as transfer_queue/interface.py uses it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(ray, name)

    def get_actor(self, name: str, namespace: str) -> Any:
        return ray.get_actor(name, namespace=own(namespace))


class _Controller:
    """The controller's class, likewise."""

    def __init__(self, controller: Any) -> None:
        self.controller = controller

    def options(self, *, namespace: str, **told: Any) -> Any:
        return self.controller.options(namespace=own(namespace), **told)


interface.ray = _Ray()
interface.TransferQueueController = _Controller(interface.TransferQueueController)
