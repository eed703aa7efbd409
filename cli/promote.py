"""Decide on the promotion of one checkpoint; score it first if needed."""

from __future__ import annotations

import typer
from rich.console import Console

from cli.checkpoint_jobs import checkpoint_name, run_job
from cli.options import (
    CheckpointArgument,
    ProfileOption,
)
from evaluation.promotion.summary import in_short
from pipelines.launch import ready
from resources.registry.ledger import ledger_of

GROUP = "Promote and explain"


def promote(checkpoint: str, profile: str | None, console: Console) -> int:
    """Scores first where that has not been done; then the gate decides and records."""
    home, loaded = ready(profile, trains=False)
    name = checkpoint_name(checkpoint, home, loaded.storage.root)
    why = f"ratchet promote {checkpoint}"
    code = run_job("evaluate_checkpoint", name, home, profile, why, console) or run_job(
        "promote", name, home, profile, why, console
    )
    entry = next(
        (entry for entry in ledger_of(home, profile).history() if entry.chain == name), None
    )
    if code == 0 and entry:
        console.print(
            f"{entry.checkpoint}: {'promoted' if entry.kind == 'promote' else 'not promoted'}",
            style="bold",
        )
        console.print(in_short(entry.decision), highlight=False, soft_wrap=True)
        console.print(
            "\n".join(f"- {reason}" for reason in entry.decision["reasons"]),
            highlight=False,
            soft_wrap=True,
        )
    return code


def command(checkpoint: CheckpointArgument, profile: ProfileOption = None) -> None:
    """Decide on the promotion of one checkpoint; score it first if needed.

    Exits 0 whether it was promoted or refused.
    """
    raise typer.Exit(promote(checkpoint, profile, Console()))
