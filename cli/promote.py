"""Decide on the promotion of one checkpoint; score it first if needed."""

from __future__ import annotations

import typer
from rich.console import Console

from cli.app.commands import Command
from cli.app.options import (
    CheckpointArgument,
    ProfileOption,
)
from cli.display.screen import screen
from cli.evaluate.checkpoint import checkpoint_name, run_job
from evaluation.promotion.summary import decision_summary
from pipelines.launch import prepare_run
from pipelines.watch.text import print_text
from resources.settings import Settings


def promote(checkpoint: str, settings: Settings, console: Console) -> int:
    """Score the checkpoint if needed, decide, and print the decision with its reasons."""
    prepare_run(settings, trains=False)
    name = checkpoint_name(checkpoint, settings)
    why = f"ratchet promote {checkpoint}"
    code = run_job("evaluate_checkpoint", name, settings, why, console) or run_job(
        "promote", name, settings, why, console
    )
    entry = next((entry for entry in settings.history if entry.run_id == name), None)
    if code == 0 and entry:
        console.print(
            f"{entry.checkpoint}: {'promoted' if entry.kind == 'promote' else 'not promoted'}",
            style="bold",
        )
        print_text(console, decision_summary(entry.decision))
        print_text(console, "\n".join(f"- {reason}" for reason in entry.decision["reasons"]))
    return code


def command(checkpoint: CheckpointArgument, profile: ProfileOption = None) -> None:
    """Decide on the promotion of one checkpoint; score it first if needed.

    Exits 0 for a promotion and for a refusal.
    """
    raise typer.Exit(promote(checkpoint, Settings.read(profile), screen()))


COMMAND = Command("Promote and explain", command)
