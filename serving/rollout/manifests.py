"""Kubernetes manifests that give each version its share of the traffic, from the record.

In: the newest rollout. Out: an HTTPRoute of the Gateway API, an InferenceService of KServe, or an
AnalysisTemplate of Argo Rollouts that asks this gateway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resources.registry.rollouts import Rollout
from serving.rollout.plan import allocations, recorded_plan

WHOLE = 10_000  # weights are integers; the least share is 0.01 %
ANNOTATION = "ratchet/rollout"


@dataclass(frozen=True)
class Place:
    """Names in the cluster. name: of the object, and of the service of `ratchet serve`. gateway: of
    the Gateway that the route belongs to. storage: URI of the folder with all checkpoints.
    """

    name: str = "ratchet"
    namespace: str = "ratchet"
    gateway: str = "ratchet"
    port: int = 8000
    storage: str = "pvc://ratchet"


def shares_of(rollout: Rollout) -> dict[int, float]:
    """Return version -> its share of the traffic, the champion first. Raises OtherPlan."""
    plan = recorded_plan(rollout)
    shares = dict.fromkeys(rollout.challengers, 0.0)
    if rollout.state == "promoted":
        shares[rollout.challenger] = 1.0
    elif rollout.open and plan.steps and not plan.steps[0].shadow:
        shares |= allocations(rollout, plan)[rollout.step]
    return {rollout.champion: 1 - sum(shares.values()), **shares}


def http_route(rollout: Rollout, place: Place, header: str) -> dict[str, Any]:
    """Return the route that splits the requests, and names each one's version in this header. Both
    parts go to the same gateway, which answers with that version and records it.
    """
    backends = [
        {
            "name": place.name,
            "port": place.port,
            "weight": round(WHOLE * share),
            "filters": [
                {
                    "type": "RequestHeaderModifier",
                    "requestHeaderModifier": {"set": [{"name": header, "value": str(version)}]},
                }
            ],
        }
        for version, share in shares_of(rollout).items()
    ]
    spec = {"parentRefs": [{"name": place.gateway}], "rules": [{"backendRefs": backends}]}
    return _object("gateway.networking.k8s.io/v1", "HTTPRoute", place, rollout, spec)


def inference_service(rollout: Rollout, place: Place, checkpoint: str) -> dict[str, Any]:
    """Return KServe's service with the challenger as its newest revision. checkpoint: its name.

    KServe sends the other requests to the revision before, which must be the champion's.
    """
    predictor: dict[str, Any] = {
        "model": {
            "modelFormat": {"name": "huggingface"},
            "args": [f"--model_name={place.name}"],
            "storageUri": f"{place.storage.rstrip('/')}/{checkpoint}",
        }
    }
    share = shares_of(rollout)[rollout.challenger]
    if rollout.state != "promoted":  # without it the newest revision gets everything
        predictor["canaryTrafficPercent"] = round(100 * share)
    spec = {"predictor": predictor}
    return _object("serving.kserve.io/v1beta1", "InferenceService", place, rollout, spec)


def analysis_template(rollout: Rollout, place: Place) -> dict[str, Any]:
    """Return Argo Rollouts' analysis: it fails once this gateway shows a breach, or the rollout was
    ended. The secret `<name>-operator` has an operator's key.
    """
    url = f"http://{place.name}.{place.namespace}.svc:{place.port}"
    metric = {
        "name": "guardrails",
        "interval": "5s",
        "failureLimit": 0,
        "consecutiveErrorLimit": 12,
        "successCondition": "result == true",
        "provider": {
            "web": {
                "url": f"{url}/rollouts/{rollout.id}/analysis",
                "headers": [{"key": "Authorization", "value": "Bearer {{ args.key }}"}],
                "jsonPath": "{$.healthy}",
            }
        },
    }
    key = {"secretKeyRef": {"name": f"{place.name}-operator", "key": "key"}}
    spec = {"args": [{"name": "key", "valueFrom": key}], "metrics": [metric]}
    return _object("argoproj.io/v1alpha1", "AnalysisTemplate", place, rollout, spec)


def _object(
    api: str, kind: str, place: Place, rollout: Rollout, spec: dict[str, Any]
) -> dict[str, Any]:
    metadata = {
        "name": place.name,
        "namespace": place.namespace,
        "annotations": {ANNOTATION: f"{rollout.id}, event {rollout.last.entry}"},
    }
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}
