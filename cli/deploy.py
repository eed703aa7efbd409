"""Put a promoted version in front of users, by steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.options import ProfileOption, VersionArgument
from resources.config.rollout import Strategy
from resources.registry.rollouts import Rollouts
from resources.registry.versions import find
from resources.settings import Settings

GROUP = "Serve"


def deploy(version: str, strategy: Strategy | None, settings: Settings, console: Console) -> int:
    """Open a rollout, and print its plan and what it needs. Raises NoRollout, UnknownVersion, and
    CorruptArtifact if the version's files are not those that the ledger names.
    """
    from artifacts.integrity import check_champion
    from serving.rollout.opening import open_rollout
    from serving.rollout.plan import needs, recorded_plan

    ledger = settings.ledger
    entry = find(settings.history, version)[-1]
    number = entry.version
    if not settings.profile.serving.upstream:  # there the files are on another machine
        check_champion(Path(entry.path), entry.checkpoint_hash)
    rollout = open_rollout(
        ledger,
        Rollouts(ledger.place),
        settings.profile.rollout,
        number,
        strategy=strategy,
        why=f"ratchet deploy {version}",
    )
    plan = recorded_plan(rollout)
    steps = ", ".join(step.title for step in plan.steps) or "none"
    lines = [f"{rollout.id}: version {number} beside version {rollout.champion}, {plan.strategy}"]
    lines.append(
        f"steps: {steps}; at least {plan.bake_s:g} s and {plan.least_pairs} pairs of requests each"
    )
    lines += [
        (
            f"{100 * need.drop:g} points more failures at {plan.steps[-1].title}: shown after "
            f"about {need.watched:,} requests (one look: {need.fixed:,})"
        )
        for need in (needs(plan, 0.02, plan.steps[-1].share) if plan.steps else [])
    ]
    lines.append("a running `ratchet serve` carries it out; `ratchet rollout status` shows it")
    console.print("\n".join(lines), highlight=False, soft_wrap=True)
    return 0


def command(
    version: VersionArgument,
    strategy: Annotated[
        Strategy | None,
        typer.Option(help="How it gets its traffic. Default: `rollout.strategy` of the profile."),
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """Put a promoted version in front of users, by steps; it is taken back if it does harm."""
    raise typer.Exit(deploy(version, strategy, Settings.read(profile), Console()))
