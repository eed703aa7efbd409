"""Parts that all pods of Ratchet share: Ray's, those of Dagster's runs, and the chart's own.

In: `orchestration.kubernetes`. Out: parts of a pod's spec, within the restricted Pod Security
Standard unless `seccomp` is Unconfined. The names are those of the chart in `deploy/helm`.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from resources.config.infrastructure import Kubernetes

HOME, CLAIM = "/var/lib/ratchet", "ratchet-home"
DAGSTER_HOME = "/opt/dagster/dagster_home"
PROFILE = "/etc/ratchet/profile.yaml"
API = "ratchet/api"  # label of pods that may connect to Kubernetes' API server
UID = 10001  # of the image's user
# The root file system of the image is read-only. Programs of the sandbox, Ray and compilers of
# kernels write to /tmp, which is the user's home folder too.
MOUNTS = [
    {"name": "home", "mountPath": HOME},
    {"name": "profile", "mountPath": PROFILE, "subPath": "profile.yaml"},
    {"name": "scratch", "mountPath": "/tmp"},
]
VOLUMES: list[dict[str, Any]] = [
    {"name": "home", "persistentVolumeClaim": {"claimName": CLAIM}},
    {"name": "profile", "configMap": {"name": "ratchet-profile"}},
    {"name": "scratch", "emptyDir": {}},
]
CONTAINER_SECURITY: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


def pod_parts(kubernetes: Kubernetes) -> dict[str, Any]:
    """Return the part of a pod's spec outside its containers."""
    kind, _, file = kubernetes.seccomp.partition(":")
    seccomp = {"type": kind, **({"localhostProfile": file} if file else {})}
    names = {
        "runtimeClassName": kubernetes.runtime_class,
        "priorityClassName": kubernetes.priority_class,
    }
    return {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UID,
            "runAsGroup": UID,
            "fsGroup": UID,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": seccomp,
        },
        **{key: name for key, name in names.items() if name},
        "volumes": deepcopy(VOLUMES),
    }


def container_parts(secret: str) -> dict[str, Any]:
    """Return the part that the containers of a pod share. secret: of this pod alone."""
    return {
        "envFrom": [
            {"configMapRef": {"name": "ratchet-environment"}},
            {"secretRef": {"name": secret}},
        ],
        "securityContext": deepcopy(CONTAINER_SECURITY),
        "volumeMounts": deepcopy(MOUNTS),
    }


def run_pod(kubernetes: Kubernetes) -> dict[str, Any]:
    """Return the pod of a Dagster run, in the form of dagster-k8s. Dagster writes to its home."""
    pod, container = pod_parts(kubernetes), container_parts("ratchet-run")
    pod["volumes"].append({"name": "dagster-home", "emptyDir": {}})
    container["volumeMounts"].append({"name": "dagster-home", "mountPath": DAGSTER_HOME})
    return {"pod_spec_config": pod, "container_config": container}
