"""The pods of runs have resources: dagster-k8s builds them from the tags of a job."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest
from dagster_k8s.job import (
    DagsterK8sJobConfig,
    construct_dagster_k8s_job,
    get_user_defined_k8s_config,
)

from pipelines.run_pods import pod_tags
from resources.config.load import load_profile


def resources_of(*changes: str, light: bool = False) -> dict[str, Any]:
    """Return the resources of a run's container, in a job that Kubernetes accepts."""
    config = get_user_defined_k8s_config(pod_tags(load_profile("cluster", changes), light=light))
    job = construct_dagster_k8s_job(
        DagsterK8sJobConfig(job_image="ratchet:0.1.0", dagster_home="/dagster"),
        ["dagster"],
        "run",
        user_defined_k8s_config=config,
    )
    import kubernetes.client

    manifest = kubernetes.client.ApiClient().sanitize_for_serialization(job)
    kubernetes_validate.validate(manifest, "1.37", strict=True)
    [container] = manifest["spec"]["template"]["spec"]["containers"]
    resources: dict[str, Any] = container["resources"]
    return resources


def test_memory_is_that_of_the_profile_as_request_and_limit() -> None:
    assert resources_of("needs.memory_gib=12.5", "orchestration.kubernetes.run_cpus=4") == {
        "requests": {"cpu": "4", "memory": "13Gi"},
        "limits": {"memory": "13Gi"},
    }


@pytest.mark.parametrize(("address", "gpus"), [("http://ray:8265", None), ("", "8")])
def test_a_pod_takes_gpus_where_the_training_runs_in_it(address: str, gpus: str | None) -> None:
    assert resources_of(f"ray.address={address!r}")["limits"].get("nvidia.com/gpu") == gpus


def test_a_rollback_needs_little() -> None:
    assert resources_of("needs.memory_gib=64", light=True)["limits"] == {"memory": "2Gi"}


def test_without_kubernetes_there_are_no_tags() -> None:
    assert pod_tags(load_profile("embedded")) == {}
