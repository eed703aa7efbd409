"""Dagster's own settings for a home: `dagster.yaml` and `workspace.yaml`, written from the profile under `RATCHET_HOME/dagster`.

Our state stands without that folder: delete it, and what is lost is the history of runs, no artifact and no decision.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from artifacts.store import write_atomic
from resources.config.profile import Orchestration
from resources.home import Home

ROOT = Path(__file__).resolve().parent.parent
OURS = "# Written by ratchet from the profile; changes here are lost (remove this line to keep yours).\n"
TRAIN = {
    "kind": "train"
}  # tag of runs that train: one at a time in the queue, and by the lease outside of it


def prepare(home: Home, orchestration: Orchestration) -> Path:
    """Sets DAGSTER_HOME for this process and its children, unless the user has, and writes both files there; returns the folder.

    A file that a person wrote is left as it is.
    """
    folder = (
        Path(os.environ["DAGSTER_HOME"]).expanduser().absolute()
        if os.environ.get("DAGSTER_HOME")
        else home.dagster
    )
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("dagster.yaml", instance_settings(orchestration)),
        ("workspace.yaml", workspace()),
    ):
        text, file = OURS + yaml.safe_dump(content, sort_keys=False), folder / name
        there = file.read_text(encoding="utf-8") if file.exists() else OURS
        if there.startswith(OURS) and there != text:
            write_atomic(file, text)
    os.environ["DAGSTER_HOME"] = str(folder)
    return folder


def instance_settings(orchestration: Orchestration) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "telemetry": {"enabled": False},
        "nux": {"enabled": False},
        "concurrency": {
            "pools": {"granularity": "run"},
            "runs": {
                "max_concurrent_runs": 8,
                "tag_concurrency_limits": [{"key": "kind", "value": TRAIN["kind"], "limit": 1}],
            },
        },
        "run_monitoring": {
            "enabled": True,
            "poll_interval_seconds": 5,
            "free_slots_after_run_end_seconds": 30,
        },
        "run_retries": {"enabled": True, "max_retries": 2, "retry_on_asset_or_op_failure": False},
        "run_launcher": {"module": "resources.run_launcher", "class": "LocalRunLauncher"},
    }
    if orchestration.launcher == "kubernetes" and (kubernetes := orchestration.kubernetes):
        settings["run_launcher"] = {
            "module": "dagster_k8s",
            "class": "K8sRunLauncher",
            "config": {
                "job_namespace": kubernetes.namespace,
                "service_account_name": kubernetes.service_account,
                "job_image": kubernetes.image,
                "load_incluster_config": True,
                "instance_config_map": "ratchet-dagster",
                "dagster_home": "/opt/dagster/dagster_home",
            },
        }
    if postgres := orchestration.postgres:
        database = {
            "hostname": postgres.hostname,
            "username": postgres.username,
            "db_name": postgres.database,
            "port": postgres.port,
            "password": {"env": "DAGSTER_POSTGRES_PASSWORD"},
        }
        settings["storage"] = {"postgres": {"postgres_db": database}}
    return settings


def workspace() -> dict[str, Any]:
    return {
        "load_from": [
            {
                "python_module": {
                    "module_name": "pipelines.definitions",
                    "working_directory": str(ROOT),
                }
            }
        ]
    }
