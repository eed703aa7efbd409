"""A separate TransferQueue for each training.

verl keeps a step's prompts and completions in TransferQueue, which finds its controller by one name
per Ray cluster. Two trainings on one Ray (trials of a search, homes that share a cluster) would see
each other's prompts, and the first to finish would close the other's queue. This module puts the
name into a namespace of the Ray job. verl imports it in every process of a run
(verl_jobs/cpu/plugin.py).
"""

from __future__ import annotations

from typing import Any

import ray
from transfer_queue import interface


def job_namespace(namespace: str) -> str:
    """Return the namespace of the current Ray job.

    Evaluated at each use: a worker may have been started before it had a job.
    """
    return f"{namespace}-{ray.get_runtime_context().get_job_id()}"


class _Ray:
    """Proxy of the module `ray` for transfer_queue/interface.py.

    Looks up actors in the job's namespace.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(ray, name)

    def get_actor(self, name: str, namespace: str) -> Any:
        return ray.get_actor(name, namespace=job_namespace(namespace))


class _Controller:
    """Proxy of the controller's class; creates the actor in the job's namespace."""

    def __init__(self, controller: Any) -> None:
        self.controller = controller

    def options(self, *, namespace: str, **options: Any) -> Any:
        return self.controller.options(namespace=job_namespace(namespace), **options)


interface.ray = _Ray()
interface.TransferQueueController = _Controller(interface.TransferQueueController)
