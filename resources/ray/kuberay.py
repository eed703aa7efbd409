"""KubeRay manifests of a profile.

They describe a cluster to submit to (`RayCluster`), or a cluster that lives as long as one training
(`RayJob`).
In: the profile, and for a `RayJob` a job. Out: a dictionary to print as YAML. Fields are those of
ray.io/v1 in KubeRay 1.6. With `spot` a worker group has a `priority`, which KubeRay 1.7 knows, and
which Ray's autoscaler v2 of Ray 2.56 or later reads. The manifests have not been run on a cluster.
"""

from __future__ import annotations

import shlex
from copy import deepcopy
from importlib.metadata import version
from typing import Any

import yaml

from resources.config.infrastructure import KubeRay, Kubernetes
from resources.config.load import ProfileError
from resources.config.profile import Profile
from resources.pods import API, CONTAINER_SECURITY, HOME, container_parts, pod_parts
from resources.ray.private import runtime_env
from verl_jobs.job import TrainingJob
from verl_jobs.trainer.preemption_hook import GRACE_S

SECRET = "ratchet-ray"  # with the key auth_token; created by hand: docs/how-to/deploy.md
OF_THE_PODS = ("HF_HUB_OFFLINE", "WANDB_MODE")
SPOT = {  # label of an interruptible node, its value, and the taint that keeps other pods away
    "gke": ("cloud.google.com/gke-spot", "true"),
    "eks": ("eks.amazonaws.com/capacityType", "SPOT"),
    "karpenter": ("karpenter.sh/capacity-type", "spot"),
    "aks": ("kubernetes.azure.com/scalesetpriority", "spot"),
}

CLUSTER = "ratchet"  # name of the permanent cluster


def ray_cluster(profile: Profile) -> dict[str, Any]:
    """Return a permanent cluster, at http://ratchet-head-svc.NAMESPACE.svc:8265.

    Raises ProfileError without `orchestration.kubernetes`.
    """
    kubernetes, settings = _kubernetes(profile), profile.ray.kuberay
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": _metadata(CLUSTER, kubernetes, settings),
        "spec": _cluster(kubernetes, settings),
    }


def ray_job(profile: Profile, job: TrainingJob) -> dict[str, Any]:
    """Return a cluster for this job alone.

    A lost cluster is created again, and the training resumes from its last complete checkpoint. The
    job id has the form that `resources.ray.job` gives, so that a step that attaches finds it.
    Raises ProfileError.
    """
    kubernetes, settings = _kubernetes(profile), profile.ray.kuberay
    spec = {
        "entrypoint": shlex.join(
            ["python", "-m", "verl_jobs.trainer.entry", str(job.path / "job.json")]
        ),
        "runtimeEnvYAML": yaml.safe_dump(_environment(job, profile.ray.patience_s)),
        "jobId": f"{job.run_id}-{job.key[:10]}-kuberay",
        "entrypointNumCpus": 0,
        "submitterPodTemplate": _submitter(kubernetes),
        "backoffLimit": 2,
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": 600,
        "rayClusterSpec": _cluster(kubernetes, settings),
    }
    metadata = _metadata(f"{job.run_id}-{job.key[:10]}", kubernetes, settings)
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": spec}


def node_check(profile: Profile) -> dict[str, Any]:
    """Return a job on the permanent cluster that prints its packages and resources. It asks for a
    GPU where the workers have one, so that a worker is started. Raises ProfileError.
    """
    kubernetes, settings = _kubernetes(profile), profile.ray.kuberay
    script = (
        "import ray, torch, verl; ray.init(); "
        "print(verl.__version__, torch.__version__, torch.cuda.is_available(), "
        "ray.cluster_resources())"
    )
    spec = {
        "entrypoint": shlex.join(["python", "-c", script]),
        "entrypointNumCpus": 1,  # the head has none
        **({"entrypointNumGpus": 1} if settings.gpus else {}),
        "clusterSelector": {"ray.io/cluster": CLUSTER},
        "submitterPodTemplate": _submitter(kubernetes),
    }
    metadata = {"name": f"{CLUSTER}-node-check", "namespace": kubernetes.namespace}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": spec}


def _submitter(kubernetes: Kubernetes) -> dict[str, Any]:
    """Return the pod that submits a RayJob; KubeRay's own has no security context."""
    container = {
        "name": "ray-job-submitter",
        "image": kubernetes.image,
        "resources": {
            "requests": {"cpu": "500m", "memory": "512Mi"},
            "limits": {"memory": "1Gi"},
        },
        **container_parts(SECRET),
    }
    pod = {**pod_parts(kubernetes), "restartPolicy": "Never", "containers": [container]}
    return {"spec": pod}


def _environment(job: TrainingJob, patience_s: float) -> dict[str, Any]:
    """Return the job's environment without what the pods set themselves.

    The pods take that from `ratchet-environment` and `ratchet-ray`; the machine that prints
    this does not know it.
    """
    variables = runtime_env(job, patience_s)["env_vars"]
    return {
        "env_vars": {name: value for name, value in variables.items() if name not in OF_THE_PODS}
    }


def _kubernetes(profile: Profile) -> Kubernetes:
    if profile.orchestration.kubernetes is None:
        raise ProfileError(
            "a manifest needs `orchestration.kubernetes` (namespace, image): take the profile "
            "`cluster`, or give one of your own"
        )
    return profile.orchestration.kubernetes


def _metadata(name: str, kubernetes: Kubernetes, settings: KubeRay) -> dict[str, Any]:
    """Return the metadata with the labels for gang schedulers.

    Which scheduler KubeRay uses is the operator's `--batch-scheduler` (Kueue needs none).
    """
    labels = {
        "": {},
        "volcano": {"volcano.sh/queue-name": settings.queue},
        "yunikorn": {
            "ray.io/gang-scheduling-enabled": "true",
            "yunikorn.apache.org/app-id": name,
            "yunikorn.apache.org/queue": settings.queue,
        },
        "kueue": {"kueue.x-k8s.io/queue-name": settings.queue},
    }[settings.gang]
    if settings.priority_class:
        labels |= {
            "kueue.x-k8s.io/priority-class"
            if settings.gang == "kueue"
            else "ray.io/priority-class-name": settings.priority_class
        }
    return {
        "name": name,
        "namespace": kubernetes.namespace,
        **({"labels": labels} if labels else {}),
    }


def _cluster(kubernetes: Kubernetes, settings: KubeRay) -> dict[str, Any]:
    scaled = not settings.gang
    min_workers = settings.min_workers if scaled else settings.workers
    groups = [
        _group(
            "on-demand" if scaled or not settings.spot else "spot-first",
            kubernetes,
            settings,
            min_workers,
        )
    ]
    if settings.spot and scaled:
        spot = _group("spot", kubernetes, settings, 0)
        groups = [{**spot, "priority": 10}, {**groups[0], "priority": 0}]
    scaling = {
        "enableInTreeAutoscaling": True,
        "autoscalerOptions": {
            "version": "v2",
            "upscalingMode": "Default",
            "idleTimeoutSeconds": settings.idle_s,
            "securityContext": deepcopy(CONTAINER_SECURITY),
            "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}],
        },
    }
    return {
        "rayVersion": version("ray"),
        "authOptions": {"mode": "token", "secretName": SECRET},  # Ray's own token stays on
        **(scaling if scaled else {}),
        "headGroupSpec": {
            "rayStartParams": {"num-cpus": "0", "dashboard-host": "0.0.0.0"},
            "template": {
                # the autoscaler in the head's pod changes the cluster
                **({"metadata": {"labels": {API: ""}}} if scaled else {}),
                "spec": _pod(
                    "ray-head", kubernetes, settings, {"cpu": "2", "memory": "8Gi"}, "on-demand"
                ),
            },
        },
        "workerGroupSpecs": groups,
    }


def _group(
    name: str, kubernetes: Kubernetes, settings: KubeRay, min_workers: int
) -> dict[str, Any]:
    resources = {
        "cpu": str(settings.cpus),
        "memory": f"{settings.memory_gib}Gi",
        **({"nvidia.com/gpu": str(settings.gpus)} if settings.gpus else {}),
    }
    return {
        "groupName": name,
        "replicas": min_workers,
        "minReplicas": min_workers,
        "maxReplicas": settings.workers,
        **({} if name == "spot-first" else {"labels": {"ray.io/market-type": name}}),
        "rayStartParams": {},
        "template": {"spec": _pod("ray-worker", kubernetes, settings, resources, name)},
    }


def _pod(
    name: str, kubernetes: Kubernetes, settings: KubeRay, resources: dict[str, str], market: str
) -> dict[str, Any]:
    """Return a pod.

    market: on-demand, spot, or spot-first, where a whole gang goes wherever there is room.
    """
    limits = {key: value for key, value in resources.items() if key != "cpu"}
    shared = max(2, settings.memory_gib // 4) if name == "ray-worker" else 2
    container = {
        "name": name,
        "image": kubernetes.image,
        "resources": {"requests": resources, "limits": limits},
        **container_parts(SECRET),
    }
    container["volumeMounts"].append({"name": "shared-memory", "mountPath": "/dev/shm"})
    memory = {"emptyDir": {"medium": "Memory", "sizeLimit": f"{shared}Gi"}}
    pod = pod_parts(kubernetes)
    pod["volumes"].append({"name": "shared-memory", **memory})
    pod.pop("priorityClassName", "")
    if name == "ray-head":
        ports = {"gcs": 6379, "dashboard": 8265, "client": 10001}
        container["ports"] = [
            {"name": port, "containerPort": number} for port, number in ports.items()
        ]
    else:
        container["lifecycle"] = {
            "preStop": {
                "exec": {"command": ["python", "-m", "verl_jobs.trainer.preemption_hook", HOME]}
            }
        }
    return {
        **pod,
        "automountServiceAccountToken": name == "ray-head" and not settings.gang,
        **(
            {"priorityClassName": settings.priority_class}
            if settings.priority_class and settings.gang != "kueue"
            else {}
        ),
        **_where(settings, market),
        **({"terminationGracePeriodSeconds": GRACE_S} if name == "ray-worker" else {}),
        "containers": [container],
    }


def _where(settings: KubeRay, market: str) -> dict[str, Any]:
    if not settings.spot:
        return {}
    key, value = SPOT[settings.spot]
    term = {
        "matchExpressions": [
            {"key": key, "operator": "NotIn" if market == "on-demand" else "In", "values": [value]}
        ]
    }
    if market == "spot-first":
        affinity: dict[str, Any] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]
        }
    else:
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    tolerations = (
        []
        if market == "on-demand"
        else [{"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}]
    )
    return {
        "affinity": {"nodeAffinity": affinity},
        **({"tolerations": tolerations} if tolerations else {}),
    }
