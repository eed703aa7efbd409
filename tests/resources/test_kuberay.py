"""The manifests for KubeRay against the schema of its kinds and Kubernetes' of pods, offline: no cluster is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from resources.config.load import ProfileError, load_profile
from resources.config.profile import KubeRay, Profile
from resources.ray.kuberay import ray_cluster, ray_job
from resources.ray.private import Joined
from rewards.composite import RewardConfig
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob
from verl_jobs.trainer import preemption_hook as taken_back
from verl_jobs.trainer.layout import PATIENCE

SCHEMA = json.loads(
    (Path(__file__).parents[1] / "deploy" / "kuberay-1.7.json").read_text(encoding="utf-8")
)
JOB = TrainingJob(
    folder="/var/lib/ratchet/runs/chain-0001/training/abc", chain="chain-0001", start="s", train="t", validation="v", inputs={},
    training=Training(), reward=RewardConfig(), reward_hash="f", isolation="auto", seed=1,
)  # fmt: skip


def profile(**asked: Any) -> Profile:
    given = load_profile("cluster")
    return given.model_copy(
        update={"ray": given.ray.model_copy(update={"kuberay": KubeRay(**asked)})}
    )


def check(manifest: dict[str, Any]) -> dict[str, Any]:
    """Holds the manifest to KubeRay 1.7's schema (its rarer fields left out) and each pod to Kubernetes'; gives its cluster."""
    jsonschema.Draft202012Validator(SCHEMA | {"$ref": f"#/{manifest['kind']}"}).validate(
        manifest["spec"]
    )
    assert manifest["apiVersion"] == "ray.io/v1" and len(manifest["metadata"]["name"]) <= 47
    cluster: dict[str, Any] = manifest["spec"].get("rayClusterSpec", manifest["spec"])
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, **group["template"]}
        kubernetes_validate.validate(pod, "1.37", strict=True)
        assert (
            group["template"]["spec"].get("restartPolicy") is None
        )  # KubeRay refuses one with its autoscaler v2
    return cluster


def names(cluster: dict[str, Any]) -> list[str]:
    return [group["groupName"] for group in cluster["workerGroupSpecs"]]


@pytest.mark.parametrize("gang", ["", "volcano", "yunikorn", "kueue"])
@pytest.mark.parametrize("spot", ["", "gke", "eks", "karpenter", "aks"])
def test_every_manifest_is_valid(gang: str, spot: str) -> None:
    asked = profile(
        spot=spot, gang=gang, queue="training" if gang else "", priority_class="high", workers=4
    )
    check(ray_cluster(asked))
    check(ray_job(asked, JOB))


def test_the_schema_refuses_a_field_that_kuberay_does_not_know() -> None:
    manifest = ray_cluster(profile())
    manifest["spec"]["workerGroupSpecs"][0]["replica"] = 1
    with pytest.raises(jsonschema.ValidationError, match="replica"):
        check(manifest)


def test_spot_workers_come_first_and_those_on_demand_where_there_are_none() -> None:
    cluster = check(ray_cluster(profile(spot="gke", workers=8, least=1)))
    spot, demand = cluster["workerGroupSpecs"]
    assert (spot["groupName"], demand["groupName"]) == ("spot", "on-demand") and spot[
        "priority"
    ] > demand["priority"]
    assert (
        spot["minReplicas"],
        demand["minReplicas"],
        spot["maxReplicas"],
        demand["maxReplicas"],
    ) == (0, 1, 8, 8)
    assert cluster["autoscalerOptions"]["version"] == "v2"  # the one that reads priority
    assert (
        spot["template"]["spec"]["tolerations"] and "tolerations" not in demand["template"]["spec"]
    )


def test_the_head_never_runs_on_a_spot_node() -> None:
    head = check(ray_cluster(profile(spot="karpenter")))["headGroupSpec"]["template"]["spec"]
    required = head["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"][0]["matchExpressions"][0]["operator"] == "NotIn"


@pytest.mark.parametrize("gang", ["", "kueue"])
def test_a_worker_that_is_taken_back_asks_its_training_to_save_and_has_the_time_for_it(
    gang: str,
) -> None:
    """The training's own process is on the head: Kubernetes tells the worker alone."""
    asked = profile(spot="eks", gang=gang, queue="training" if gang else "")
    for cluster in (check(ray_cluster(asked)), check(ray_job(asked, JOB))):
        assert "lifecycle" not in cluster["headGroupSpec"]["template"]["spec"]["containers"][0]
        for group in cluster["workerGroupSpecs"]:
            pod = group["template"]["spec"]
            _, _, module, home = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
            assert module == taken_back.__spec__.name and Path(JOB.folder).is_relative_to(home)
            assert pod["terminationGracePeriodSeconds"] > taken_back.STAYS_S
    assert (
        yaml.safe_load(ray_job(asked, JOB)["spec"]["runtimeEnvYAML"])["env_vars"][
            taken_back.TRAINING
        ]
        == JOB.folder
    )


def test_a_gang_has_all_its_workers_at_once_and_is_not_scaled() -> None:
    manifest = ray_job(profile(gang="volcano", queue="training", workers=4, spot="aks"), JOB)
    cluster = check(manifest)
    assert (
        manifest["metadata"]["labels"]["volcano.sh/queue-name"] == "training"
        and "enableInTreeAutoscaling" not in cluster
    )
    assert names(cluster) == ["spot-first"]
    group = cluster["workerGroupSpecs"][0]
    assert group["replicas"] == group["minReplicas"] == group["maxReplicas"] == 4
    assert (
        "preferredDuringSchedulingIgnoredDuringExecution"
        in group["template"]["spec"]["affinity"]["nodeAffinity"]
    )


def test_a_priority_class_is_that_of_every_pod() -> None:
    cluster = check(ray_cluster(profile(priority_class="high")))
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    assert {group["template"]["spec"]["priorityClassName"] for group in groups} == {"high"}


def test_the_job_file_is_the_one_that_a_local_ray_runs() -> None:
    manifest = ray_job(profile(), JOB)
    assert (
        manifest["spec"]["entrypoint"] == f"python -m verl_jobs.trainer.entry {JOB.folder}/job.json"
    )
    assert manifest["spec"]["jobId"].startswith(
        f"{JOB.chain}-{JOB.key[:10]}-"
    )  # what an attaching step looks for


def test_its_processes_find_what_those_of_a_joined_ray_do_and_wait_for_the_nodes_that_scaling_brings() -> (
    None
):
    asked = profile()
    told = yaml.safe_load(ray_job(asked, JOB)["spec"]["runtimeEnvYAML"])
    joined = Joined("http://head:8265", JOB, asked.ray.patience_s).submission()["runtime_env"][
        "env_vars"
    ]
    assert told["env_vars"] == {
        name: value
        for name, value in joined.items()
        if name not in ("HF_HUB_OFFLINE", "WANDB_MODE")
    }  # the pods' own
    assert float(told["env_vars"][PATIENCE]) == asked.ray.patience_s > 0


def test_a_token_is_asked_for() -> None:
    assert check(ray_cluster(profile()))["authOptions"]["mode"] == "token"


def test_without_a_namespace_and_an_image_there_is_no_manifest() -> None:
    with pytest.raises(ProfileError, match=r"orchestration\.kubernetes"):
        ray_cluster(load_profile("embedded"))


def test_a_gang_without_its_queue_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a `queue`"):
        KubeRay(gang="kueue")
