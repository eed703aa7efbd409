"""Kubernetes manifests that give each version its share of the traffic, from the record.

In: the newest release. Out: an HTTPRoute of the Gateway API, an InferenceService of KServe, or an
AnalysisTemplate of Argo Rollouts that asks this gateway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resources.registry.releases import Release
from serving.release.plan import allocations, recorded_plan

WHOLE = 10_000  # weights are integers; the least share is 0.01 %
ANNOTATION = "ratchet/release"


@dataclass(frozen=True)
class ClusterNames:
    """Names in the cluster. name: of the object, and of the service of `ratchet serve`. gateway: of
    the Gateway that the route belongs to. storage: URI of the folder with all checkpoints.
    """

    name: str = "ratchet"
    namespace: str = "ratchet"
    gateway: str = "ratchet"
    port: int = 8000
    storage: str = "pvc://ratchet"


def shares_of(release: Release) -> dict[int, float]:
    """Return version -> its share of the traffic, the champion first."""
    plan = recorded_plan(release)
    shares = dict.fromkeys(release.challengers, 0.0)
    if release.state == "promoted":
        shares[release.challenger] = 1.0
    elif release.open and plan.steps and (plan.experiment or not plan.steps[release.step].shadow):
        shares |= allocations(release, plan)[release.step]
    return {release.champion: 1 - sum(shares.values()), **shares}


def http_route(release: Release, names: ClusterNames, header: str) -> dict[str, Any]:
    """Return the route that splits the requests, and names each one's version in this header. Both
    parts go to the same gateway, which answers with that version and records it.
    """
    backends = [
        {
            "name": names.name,
            "port": names.port,
            "weight": round(WHOLE * share),
            "filters": [
                {
                    "type": "RequestHeaderModifier",
                    "requestHeaderModifier": {"set": [{"name": header, "value": str(version)}]},
                }
            ],
        }
        for version, share in shares_of(release).items()
    ]
    spec = {"parentRefs": [{"name": names.gateway}], "rules": [{"backendRefs": backends}]}
    return _object("gateway.networking.k8s.io/v1", "HTTPRoute", names, release, spec)


def inference_service(release: Release, names: ClusterNames, checkpoint: str) -> dict[str, Any]:
    """Return KServe's service with the challenger as its newest revision. checkpoint: its name.

    KServe sends the other requests to the revision before, which must be the champion's.
    """
    predictor: dict[str, Any] = {
        "model": {
            "modelFormat": {"name": "huggingface"},
            "args": [f"--model_name={names.name}"],
            "storageUri": f"{names.storage.rstrip('/')}/{checkpoint}",
        }
    }
    share = shares_of(release)[release.challenger]
    if release.state != "promoted":  # without it the newest revision gets everything
        predictor["canaryTrafficPercent"] = round(100 * share)
    spec = {"predictor": predictor}
    return _object("serving.kserve.io/v1beta1", "InferenceService", names, release, spec)


def analysis_template(release: Release, names: ClusterNames) -> dict[str, Any]:
    """Return Argo Rollouts' analysis: it fails once this gateway shows a breach, or the release was
    ended. The secret `<name>-operator` has an operator's key.
    """
    url = f"http://{names.name}.{names.namespace}.svc:{names.port}"
    metric = {
        "name": "guardrails",
        "interval": "5s",
        "failureLimit": 0,
        "consecutiveErrorLimit": 12,
        "successCondition": "result == true",
        "provider": {
            "web": {
                "url": f"{url}/releases/{release.id}/analysis",
                "headers": [{"key": "Authorization", "value": "Bearer {{ args.key }}"}],
                "jsonPath": "{$.healthy}",
            }
        },
    }
    key = {"secretKeyRef": {"name": f"{names.name}-operator", "key": "key"}}
    spec = {"args": [{"name": "key", "valueFrom": key}], "metrics": [metric]}
    return _object("argoproj.io/v1alpha1", "AnalysisTemplate", names, release, spec)


def _object(
    api: str, kind: str, names: ClusterNames, release: Release, spec: dict[str, Any]
) -> dict[str, Any]:
    metadata = {
        "name": names.name,
        "namespace": names.namespace,
        "annotations": {ANNOTATION: f"{release.id}, event {release.last.entry}"},
    }
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}
