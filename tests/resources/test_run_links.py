"""Links from a checkpoint to the curves of its training."""

from __future__ import annotations

import shlex
from pathlib import Path

import dagster as dg

from resources.registry.mlflow import Registry
from resources.run_links import mlflow_link, wandb_link
from verl_jobs.job import WANDB_ADDRESS


def test_offline_runs_have_the_command_that_uploads_all_of_them(tmp_path: Path) -> None:
    folder = tmp_path / "a home" / "training"
    runs = [folder / "wandb" / f"offline-run-2026112{day}_1-x" for day in (4, 5)]
    for run in runs:
        run.mkdir(parents=True)
    assert shlex.split(wandb_link(folder).value) == ["wandb", "sync", *map(str, runs)]


def test_an_online_run_is_a_link(tmp_path: Path) -> None:
    (tmp_path / WANDB_ADDRESS).write_text("https://wandb.ai/team/ratchet/runs/1")
    assert wandb_link(tmp_path) == dg.MetadataValue.url("https://wandb.ai/team/ratchet/runs/1")


def test_an_mlflow_file_has_the_command_that_shows_it(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    command = shlex.split(mlflow_link(registry, "chain-0001").value)
    assert command == ["mlflow", "ui", "--backend-store-uri", registry.uri]
