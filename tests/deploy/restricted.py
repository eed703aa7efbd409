"""The restricted Pod Security Standard, for a pod's spec.

The rules are those of Kubernetes' documentation, "Pod Security Standards", as of 1.37; a pod for
Windows is not considered. With it two rules of Ratchet: a read-only root and a named token.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

VOLUMES = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
    "projected", "secret",
)  # fmt: skip
NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")
SECCOMP = ("RuntimeDefault", "Localhost")


def violations(pod: dict[str, Any]) -> Iterator[str]:
    """Yield each violation with the path of its field."""
    security = pod.get("securityContext", {})
    yield from (f"{name}: must be false" for name in NAMESPACES if pod.get(name))
    for volume in pod.get("volumes", ()):
        kinds = set(volume) - {"name"}
        if not kinds <= set(VOLUMES):
            yield f"volumes {volume['name']}: {kinds} is not allowed"
    if security.get("sysctls"):
        yield "securityContext.sysctls: not allowed"
    if "automountServiceAccountToken" not in pod:
        yield "automountServiceAccountToken: must be set"
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        for fault in _in_container(container, security):
            yield f"{container['name']}: {fault}"


def _in_container(container: dict[str, Any], pod: dict[str, Any]) -> Iterator[str]:
    own = container.get("securityContext", {})
    capabilities = own.get("capabilities", {})
    if own.get("privileged"):
        yield "privileged"
    if own.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation: must be false"
    if capabilities.get("drop") != ["ALL"] or set(capabilities.get("add", ())) - {
        "NET_BIND_SERVICE"
    }:
        yield "capabilities: must drop ALL and add nothing"
    if own.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        yield "runAsNonRoot: must be true"
    if own.get("runAsUser", pod.get("runAsUser")) in (0, None):
        yield "runAsUser: must be another than 0"
    if own.get("seccompProfile", pod.get("seccompProfile", {})).get("type") not in SECCOMP:
        yield "seccompProfile: must be RuntimeDefault or Localhost"
    if own.get("procMount", "Default") != "Default":
        yield "procMount: must be Default"
    if own.get("readOnlyRootFilesystem") is not True:
        yield "readOnlyRootFilesystem: must be true"
    if any("hostPort" in port for port in container.get("ports", ())):
        yield "hostPort: not allowed"
