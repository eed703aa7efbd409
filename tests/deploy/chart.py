"""The Helm chart, rendered without a cluster, and all pods that come from it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from resources.config.profile import Profile
from resources.ray.kuberay import ray_job
from rewards.config import RewardConfig
from tests.test_architecture import ROOT
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob

CHART = ROOT / "deploy" / "helm"
EVERYTHING: dict[str, Any] = {
    "serve": {
        "enabled": True,
        "from": [{"namespaceSelector": {}}],
        "labels": {"kueue.x-k8s.io/queue-name": "serving"},
        "nodeSelector": {"gpu": "yes"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "autoscaling": {"enabled": True},
        "serviceMonitor": {"enabled": True},
    },
    "backup": {"enabled": True, "url": "s3://backups/ratchet"},
    "priorityClasses": {"ratchet-training": -10},
}
JOB = TrainingJob(
    folder="/var/lib/ratchet/runs/chain-0001/training/abc", run_id="chain-0001", start="s",
    train="t", validation="v", inputs={}, training=Training(), reward=RewardConfig(),
    reward_hash="f", isolation="auto", seed=1,
)  # fmt: skip


def rendered(values: dict[str, Any], namespace: str = "ratchet") -> list[dict[str, Any]]:
    """Return the objects of the chart with these values. Raises HelmError."""
    helm = pytest.importorskip("helm_python", reason="helm-python-sdk: the lock has it")
    with helm.Chart.load(CHART) as chart:
        chart.validate_schema(values)
        files = chart.render(values, name="ratchet", namespace=namespace)
    objects = [part for text in files.values() for part in yaml.safe_load_all(text)]
    return [each for each in objects if each]


@cache
def everything() -> tuple[dict[str, Any], ...]:
    """Return the objects with every option on."""
    return tuple(rendered(EVERYTHING))


def pods_of(each: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and template of the pods that an object makes."""
    spec = each.get("spec", {})
    spec = spec.get("jobTemplate", each).get("spec", {})
    groups = spec.get("rayClusterSpec", spec)
    for group in (groups.get("headGroupSpec"), *groups.get("workerGroupSpecs", ())):
        if group:
            yield group["template"]["spec"]["containers"][0]["name"], group["template"]
    for key in ("template", "submitterPodTemplate"):
        if key in spec:
            yield f"{each['metadata']['name']}, {key}", spec[key]


def run_pod(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the pod template that dagster-k8s makes for a run from Dagster's settings."""
    from dagster_k8s.container_context import K8sContainerContext
    from dagster_k8s.job import DagsterK8sJobConfig, construct_dagster_k8s_job
    from kubernetes.client import ApiClient

    config = settings["run_launcher"]["config"]
    context = K8sContainerContext.create_from_config(
        {"k8s": {"run_k8s_config": config["run_k8s_config"]}}
    )
    job = construct_dagster_k8s_job(
        DagsterK8sJobConfig(config["job_image"], config["dagster_home"]),
        ["dagster", "api", "execute_run"],
        "dagster-run-1",
        context.run_k8s_config,
    )
    template: dict[str, Any] = ApiClient().sanitize_for_serialization(job)["spec"]["template"]
    return template


def all_pods(profile: Profile) -> dict[str, dict[str, Any]]:
    """Return every pod by name: of the chart, of runs, and of a training's own cluster."""
    from pipelines.chart import chart_values

    values = chart_values(profile)
    objects = rendered(EVERYTHING | values)
    pods = dict(pod for each in objects for pod in pods_of(each))
    pods |= {f"own {name}": pod for name, pod in pods_of(ray_job(profile, JOB))}
    return pods | {"run": run_pod(values["generated"]["dagster"])}
