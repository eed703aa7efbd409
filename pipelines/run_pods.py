"""Resources of the pods in which Kubernetes runs a job, as dagster-k8s reads them from its tags.

In: the profile. Out: tags for a job. What all pods have in common is in the instance's settings.
A training on a joined Ray takes its GPUs there, and so do the scores of what it trained.
"""

from __future__ import annotations

import json
from math import ceil
from typing import Any

from resources.capacity import memory_gib
from resources.config.profile import Profile
from verl_jobs.trainer.layout import CPUS, cpus_beside

CONFIG = "dagster-k8s/config"
LIGHT = {"cpu": "500m", "memory": "2Gi"}  # of a rollback or a clean-up


def pod_tags(profile: Profile, *, light: bool = False) -> dict[str, str]:
    """Return the tags of a job that sets its pod's resources; none without Kubernetes.

    light: for a job without a training, a sandbox or a model. Memory is a limit too, and so that of
    `needs.memory_gib` with what the planner adds.
    """
    kubernetes = profile.orchestration.kubernetes
    if profile.orchestration.launcher != "kubernetes" or kubernetes is None:
        return {}
    requests: dict[str, Any] = dict(LIGHT)
    if not light:
        requests = {
            "cpu": str(kubernetes.run_cpus),
            "memory": f"{ceil(memory_gib(profile))}Gi",
            **_private_ray(profile, kubernetes.run_cpus),
        }
    limits = {name: amount for name, amount in requests.items() if name != "cpu"}
    resources = {"resources": {"requests": requests, "limits": limits}}
    return {CONFIG: json.dumps({"container_config": resources})}


def _private_ray(profile: Profile, cpus: int) -> dict[str, str]:
    """Return what a training on a Ray within the run's pod takes."""
    training = profile.training
    if profile.ray.address or training.engine == "hf":  # whose ranks share the pod's CPUs
        return {}
    needed = training.ranks * CPUS + cpus_beside(training)
    gpus = training.ranks + training.scale.engine_gpus
    return {"cpu": str(max(cpus, needed)), "nvidia.com/gpu": str(gpus)}
