"""What a profile says about a cluster, as values of the Helm chart in `deploy/helm`.

The chart's `profile.yaml` has the values of the profile `cluster`; `ratchet jobs manifest --values`
prints those of another one, for `helm upgrade --values`.
"""

from __future__ import annotations

import re
from typing import Any

from pipelines.instance import instance_settings
from resources.config.load import ProfileError
from resources.config.profile import Profile
from resources.pods import HOME, PROFILE, container_parts, pod_parts
from resources.ray.kuberay import node_check, ray_cluster

WORKSPACE = {
    "load_from": [{"grpc_server": {"host": "127.0.0.1", "port": 4000, "location_name": "ratchet"}}]
}


def chart_values(profile: Profile) -> dict[str, Any]:
    """Return the chart's values below `generated`. Raises ProfileError without
    `orchestration.kubernetes`.
    """
    orchestration = profile.orchestration
    if (kubernetes := orchestration.kubernetes) is None:
        raise ProfileError(
            "the chart needs `orchestration.kubernetes` (namespace, image): extend the profile "
            "`cluster`, or give this section"
        )
    hub_id = re.fullmatch(r"[\w.-]+/[\w.-]+", profile.base)  # else a folder, gguf: or package:
    generated = {
        "namespace": kubernetes.namespace,
        "image": kubernetes.image,
        "serviceAccount": kubernetes.service_account,
        "environment": {
            "RATCHET_HOME": HOME,
            "RATCHET_PROFILE": PROFILE,
            "HOME": "/tmp",
            "HF_HOME": f"{HOME}/huggingface",
            "HF_HUB_OFFLINE": "0" if hub_id or profile.evaluation.hub else "1",
            **({"RAY_ADDRESS": profile.ray.address} if profile.ray.address else {}),
        },
        "pod": pod_parts(kubernetes),
        "container": {key: part for key, part in container_parts("").items() if key != "envFrom"},
        "diskGib": profile.needs.disk_gib,
        "scheme": "HTTPS" if profile.serving.tls_key else "HTTP",
        "profile": profile.model_dump(mode="json", exclude_defaults=True),
        "dagster": instance_settings(orchestration),
        "workspace": WORKSPACE,
        "ray": ray_cluster(profile),
        "nodeCheck": node_check(profile),
    }
    return {"generated": generated}
