"""The manifests for KubeRay are valid by the schemas of KubeRay and of Kubernetes, offline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from resources.config.infrastructure import KubeRay
from resources.config.load import ProfileError, load_profile
from resources.config.profile import Profile
from resources.ray.kuberay import ray_cluster, ray_job
from resources.ray.private import Joined
from rewards.config import RewardConfig
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob
from verl_jobs.trainer import preemption_hook
from verl_jobs.trainer.layout import PATIENCE

SCHEMA = json.loads(
    (Path(__file__).parents[1] / "deploy" / "kuberay-1.7.json").read_text(encoding="utf-8")
)
JOB = TrainingJob(
    folder="/var/lib/ratchet/runs/chain-0001/training/abc",
    run_id="chain-0001",
    start="s",
    train="t",
    validation="v",
    inputs={},
    training=Training(),
    reward=RewardConfig(),
    reward_hash="f",
    isolation="auto",
    seed=1,
)


def profile(**settings: Any) -> Profile:
    cluster = load_profile("cluster")
    return cluster.model_copy(
        update={"ray": cluster.ray.model_copy(update={"kuberay": KubeRay(**settings)})}
    )


def check(manifest: dict[str, Any]) -> dict[str, Any]:
    """Validate the manifest and its pods, and return its cluster.

    The schema is that of KubeRay 1.7 without rare fields; pods follow the schema of Kubernetes.
    """
    jsonschema.Draft202012Validator(SCHEMA | {"$ref": f"#/{manifest['kind']}"}).validate(
        manifest["spec"]
    )
    assert manifest["apiVersion"] == "ray.io/v1"
    assert len(manifest["metadata"]["name"]) <= 47
    cluster: dict[str, Any] = manifest["spec"].get("rayClusterSpec", manifest["spec"])
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, **group["template"]}
        kubernetes_validate.validate(pod, "1.37", strict=True)
        # KubeRay refuses a restart policy with its autoscaler v2.
        assert group["template"]["spec"].get("restartPolicy") is None
    return cluster


def names(cluster: dict[str, Any]) -> list[str]:
    return [group["groupName"] for group in cluster["workerGroupSpecs"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gang", "spot"),
    [
        *((gang, "gke") for gang in ("", "volcano", "yunikorn", "kueue")),
        *(("", spot) for spot in ("", "eks", "karpenter", "aks")),
    ],
)
def test_every_manifest_is_valid(gang: str, spot: str) -> None:
    settings = profile(
        spot=spot, gang=gang, queue="training" if gang else "", priority_class="high", workers=4
    )
    check(ray_cluster(settings))
    check(ray_job(settings, JOB))


def test_the_schema_refuses_an_unknown_field() -> None:
    manifest = ray_cluster(profile())
    manifest["spec"]["workerGroupSpecs"][0]["replica"] = 1
    with pytest.raises(jsonschema.ValidationError, match="replica"):
        check(manifest)


def test_spot_workers_have_priority_over_on_demand_workers() -> None:
    cluster = check(ray_cluster(profile(spot="gke", workers=8, min_workers=1)))
    spot, demand = cluster["workerGroupSpecs"]
    assert (spot["groupName"], demand["groupName"]) == ("spot", "on-demand")
    assert spot["priority"] > demand["priority"]
    assert (
        spot["minReplicas"],
        demand["minReplicas"],
        spot["maxReplicas"],
        demand["maxReplicas"],
    ) == (0, 1, 8, 8)
    assert cluster["autoscalerOptions"]["version"] == "v2"  # only version 2 uses the priority
    assert spot["template"]["spec"]["tolerations"]
    assert "tolerations" not in demand["template"]["spec"]


def test_the_head_never_runs_on_a_spot_node() -> None:
    head = check(ray_cluster(profile(spot="karpenter")))["headGroupSpec"]["template"]["spec"]
    required = head["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"][0]["matchExpressions"][0]["operator"] == "NotIn"


@pytest.mark.parametrize("gang", ["", "kueue"])
def test_a_preempted_worker_has_time_to_save(
    gang: str,
) -> None:
    """The training process is on the head, but Kubernetes notifies only the worker."""
    settings = profile(spot="eks", gang=gang, queue="training" if gang else "")
    for cluster in (check(ray_cluster(settings)), check(ray_job(settings, JOB))):
        assert "lifecycle" not in cluster["headGroupSpec"]["template"]["spec"]["containers"][0]
        for group in cluster["workerGroupSpecs"]:
            pod = group["template"]["spec"]
            _, _, module, home = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
            assert module == preemption_hook.__spec__.name
            assert Path(JOB.folder).is_relative_to(home)
            assert pod["terminationGracePeriodSeconds"] > preemption_hook.STAYS_S
    assert (
        yaml.safe_load(ray_job(settings, JOB)["spec"]["runtimeEnvYAML"])["env_vars"][
            preemption_hook.TRAINING
        ]
        == JOB.folder
    )


def test_a_gang_starts_all_workers_and_is_not_scaled() -> None:
    manifest = ray_job(profile(gang="volcano", queue="training", workers=4, spot="aks"), JOB)
    cluster = check(manifest)
    assert manifest["metadata"]["labels"]["volcano.sh/queue-name"] == "training"
    assert "enableInTreeAutoscaling" not in cluster
    assert names(cluster) == ["spot-first"]
    group = cluster["workerGroupSpecs"][0]
    assert group["replicas"] == group["minReplicas"] == group["maxReplicas"] == 4
    assert (
        "preferredDuringSchedulingIgnoredDuringExecution"
        in group["template"]["spec"]["affinity"]["nodeAffinity"]
    )


def test_every_pod_has_the_priority_class() -> None:
    cluster = check(ray_cluster(profile(priority_class="high")))
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    assert {group["template"]["spec"]["priorityClassName"] for group in groups} == {"high"}


def test_the_manifest_runs_the_job_file_of_the_training() -> None:
    manifest = ray_job(profile(), JOB)
    assert (
        manifest["spec"]["entrypoint"] == f"python -m verl_jobs.trainer.entry {JOB.folder}/job.json"
    )
    # A step that attaches to a running job looks for this prefix.
    assert manifest["spec"]["jobId"].startswith(f"{JOB.run_id}-{JOB.key[:10]}-")


def test_the_manifest_sets_the_environment_of_a_joined_ray() -> None:
    settings = profile()
    environment = yaml.safe_load(ray_job(settings, JOB)["spec"]["runtimeEnvYAML"])
    joined = Joined("http://head:8265", JOB, settings.ray.patience_s).submission()["runtime_env"][
        "env_vars"
    ]
    assert environment["env_vars"] == {
        name: value
        for name, value in joined.items()
        if name not in ("HF_HUB_OFFLINE", "WANDB_MODE")
    }  # the pods set these two
    assert float(environment["env_vars"][PATIENCE]) == settings.ray.patience_s > 0


def test_the_cluster_requires_a_token() -> None:
    assert check(ray_cluster(profile()))["authOptions"]["mode"] == "token"


def test_a_manifest_needs_namespace_and_image() -> None:
    with pytest.raises(ProfileError, match=r"orchestration\.kubernetes"):
        ray_cluster(load_profile("embedded"))


def test_a_gang_without_a_queue_is_refused() -> None:
    with pytest.raises(ValueError, match="queue"):
        KubeRay(gang="kueue")
