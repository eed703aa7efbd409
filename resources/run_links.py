"""Where a training's curves are: the pages of its W&B and MLflow runs, or the command that opens
them.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import dagster as dg

from resources.registry.mlflow import Registry, RegistryBehind
from verl_jobs.job import WANDB_ADDRESS


def wandb_link(training: Path) -> dg.MetadataValue[str]:
    """Return the address of the training's W&B run, or the command that uploads its offline runs.

    training: the job's folder.
    """
    address = training / WANDB_ADDRESS
    if address.exists():
        return dg.MetadataValue.url(address.read_text(encoding="utf-8"))
    runs = sorted((training / "wandb").glob("offline-run-*"))
    return (
        dg.MetadataValue.text(shlex.join(["wandb", "sync", *map(str, runs)]))
        if runs
        else dg.MetadataValue.path(str(training / "wandb"))
    )


def mlflow_link(registry: Registry, run: str) -> dg.MetadataValue[str]:
    """Return the address of an MLflow run on its server, or the command that shows the home's file.

    run: its name, that of the pipeline run.
    """
    if registry.server is None:
        command = ["mlflow", "ui", "--backend-store-uri", registry.uri]
        return dg.MetadataValue.text(shlex.join(command))
    try:
        return dg.MetadataValue.url(registry.run_page(run) or registry.server)
    except RegistryBehind as error:
        return dg.MetadataValue.text(str(error))
