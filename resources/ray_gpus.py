"""The GPUs of a Ray that is already there, as its dashboard lists them."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from verl_jobs.planner.shapes import GPUS, Gpu

TIMEOUT_S = 5.0
RATES = GPUS["A100-80"]  # of a GPU that is not known: only its memory matters to a check


def gpus_of_ray(address: str) -> list[Gpu]:
    """Return the GPUs of the living nodes; empty if it has none now, or does not say.

    address: the dashboard, http://host:8265. Its token, if any, is in RAY_AUTH_TOKEN.
    """
    request = urllib.request.Request(f"{address.rstrip('/')}/nodes?view=summary")
    if token := os.environ.get("RAY_AUTH_TOKEN"):
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            nodes = json.load(answer)["data"]["summary"]
    except (OSError, ValueError, KeyError):
        return []
    return [_gpu(gpu) for node in nodes if _alive(node) for gpu in node.get("gpus") or []]


def _alive(node: dict[str, Any]) -> bool:
    return bool((node.get("raylet") or {}).get("state", "ALIVE") == "ALIVE")


def _gpu(gpu: dict[str, Any]) -> Gpu:
    """Return a GPU by its name and its memory in MiB."""
    return Gpu(str(gpu["name"]), int(gpu["memoryTotal"]) * 2**20, RATES.flops, RATES.bandwidth)
