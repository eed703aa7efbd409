"""Run one of Dagster's jobs for one checkpoint, with a live view."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from pipelines.launch import explain_failure, prepare_run, run_with_view, start_worker
from pipelines.watch.view import View
from resources.intake import import_checkpoint
from resources.registry.versions import UnknownVersion, find
from resources.run_record import PipelineRun
from resources.settings import Settings

STAGES = {
    "evaluate_checkpoint": ("contestant_scores", "leaderboard"),
    "score_benchmark": ("benchmark_scores", "leaderboard"),
    "promote": ("promoted_model",),
}


def evaluate_checkpoint(checkpoint: str, settings: Settings, console: Console) -> int:
    """Score a checkpoint on validation, a held-out draw and the profile's benchmarks."""
    prepare_run(settings, trains=False)
    name = checkpoint_name(checkpoint, settings)
    why = f"ratchet evaluate {checkpoint}"
    return run_job("evaluate_checkpoint", name, settings, why, console)


def score_benchmark(checkpoint: str, benchmark: str, settings: Settings, console: Console) -> int:
    """Score a checkpoint on one benchmark, which the profile need not name."""
    from evaluation.benchmarks.registry import score_name

    name = (
        benchmark if settings.profile.evaluation.settings_of(benchmark) else score_name(benchmark)
    )
    prepare_run(settings, trains=False)
    cell = f"{checkpoint_name(checkpoint, settings)}--{name}"
    why = f"ratchet evaluate {checkpoint} --benchmark {benchmark}"
    return run_job("score_benchmark", cell, settings, why, console)


def checkpoint_name(checkpoint: str, settings: Settings) -> str:
    """Return the checkpoint's name in the store; a folder is first copied into it. A version's
    number, name or alias (`champion`) stands for its checkpoint.

    Raises FileNotFoundError, which lists the known names.
    """
    store = settings.store
    if Path(checkpoint).is_dir():
        return import_checkpoint(store, Path(checkpoint)).manifest.name
    known = {
        name: each
        for name in store.names("checkpoints")
        if (each := store.current("checkpoints", name))
    }
    if checkpoint in known:
        return checkpoint
    try:
        content = find(settings.history, checkpoint)[-1].checkpoint_hash
    except UnknownVersion:
        content = ""
    for name, artifact in known.items():
        if artifact.content_hash == content:
            return name
    raise FileNotFoundError(
        f"no checkpoint {checkpoint!r}: give a Hugging Face folder, or one of: "
        f"{', '.join(known) or 'none yet'}"
    )


def run_job(job: str, partition: str, settings: Settings, why: str, console: Console) -> int:
    """Run a job to its end in a process of its own; return its exit code."""
    folder = settings.home.runs / partition
    view = View(folder, f"{job} · {partition}", stages=STAGES[job])
    code = run_with_view(
        lambda: start_worker(settings, job, partition, why),
        view,
        PipelineRun(settings.home.runs, partition),
        console,
    )
    if code:
        explain_failure(folder, code)
    return code
