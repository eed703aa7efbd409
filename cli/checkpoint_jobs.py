"""Run one of Dagster's jobs for one checkpoint, watched."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from pipelines.launch import explain_failure, ready, start_worker, watched
from pipelines.watch.view import View
from resources.home import Home
from resources.intake import take_in
from resources.run_record import PipelineRun


def evaluate_checkpoint(checkpoint: str, profile: str | None, console: Console) -> int:
    """A name of the store, or a folder, which is copied and hashed first."""
    home, loaded = ready(profile, trains=False)
    name = checkpoint_name(checkpoint, home, loaded.storage.root)
    return run_job(
        "evaluate_checkpoint", name, home, profile, f"ratchet evaluate {checkpoint}", console
    )


def checkpoint_name(checkpoint: str, home: Home, root: str) -> str:
    """Return the checkpoint's name in the store; a folder is copied in first. Raises
    FileNotFoundError, which lists the names.
    """
    store = home.store(root)
    if Path(checkpoint).is_dir():
        return take_in(store, Path(checkpoint)).manifest.name
    if store.current("checkpoints", checkpoint) is None:
        there = (
            ", ".join(
                name for name in store.names("checkpoints") if store.current("checkpoints", name)
            )
            or "none yet"
        )
        raise FileNotFoundError(
            f"no checkpoint {checkpoint!r}: give a Hugging Face folder, or one of: {there}"
        )
    return checkpoint


def run_job(
    job: str, name: str, home: Home, profile: str | None, why: str, console: Console
) -> int:
    folder = home.runs / name
    view = View(
        folder,
        f"{job} · {name}",
        stages=("benchmark_scores", "leaderboard")
        if job == "evaluate_checkpoint"
        else ("promoted_model",),
    )
    code = watched(
        lambda: start_worker(home, job, name, profile, why), view, PipelineRun(folder), console
    )
    if code:
        explain_failure(folder, code, console)
    return code
