"""Put a promoted version in front of users by steps, or compare several in an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.app.commands import Command
from cli.app.options import ProfileOption
from cli.display.screen import screen
from pipelines.watch.text import print_text
from resources.config.release import Strategy
from resources.registry.releases import Releases
from resources.registry.versions import find
from resources.settings import Settings


def deploy(
    versions: Sequence[str], strategy: Strategy | None, settings: Settings, console: Console
) -> int:
    """Open a release, and print its plan and what it needs. Raises NoRelease, UnknownVersion, and
    CorruptArtifact if a version's files are not those that the ledger names.
    """
    from artifacts.integrity import check_champion
    from serving.release.opening import open_release
    from serving.release.plan import needs, recorded_plan

    ledger = settings.ledger
    entries = [find(settings.history, version)[-1] for version in versions]
    if not settings.profile.serving.upstream:  # there the files are on another machine
        for entry in entries:
            check_champion(Path(entry.path), entry.checkpoint_hash)
    release = open_release(
        ledger,
        Releases(ledger.place),
        settings.profile.release,
        *(entry.version for entry in entries),
        strategy=strategy,
        why=f"ratchet deploy {' '.join(versions)}",
    )
    plan = recorded_plan(release)
    steps = ", ".join(step.title for step in plan.steps) or "none"
    numbers = ", ".join(map(str, release.challengers))
    named = f"version{'s' if len(release.challengers) > 1 else ''} {numbers}"
    lines = [f"{release.id}: {named} beside version {release.champion}, {plan.strategy}"]
    if plan.experiment:
        lines.append(f"shares: {steps} each; until a gain above {plan.gain:g} is shown")
    else:
        lines.append(
            f"steps: {steps}; at least {plan.bake_s:g} s and {plan.min_pairs} pairs of requests "
            "each"
        )
    lines += [
        (
            f"{100 * need.drop:g} points more failures at {plan.steps[-1].title}: shown after "
            f"about {need.watched:,} requests (one look: {need.fixed:,})"
        )
        for need in (needs(plan, 0.02, plan.steps[-1].share) if plan.steps else [])
    ]
    lines.append("a running `ratchet serve` carries it out; `ratchet release status` shows it")
    print_text(console, "\n".join(lines))
    return 0


def command(
    versions: Annotated[
        list[str],
        typer.Argument(
            help="Versions: number, champion, previous, challenger, or a checkpoint's name. "
            "Several are an experiment: each against the deployed version."
        ),
    ],
    strategy: Annotated[
        Strategy | None,
        typer.Option(help="How it gets its traffic. Default: `release.strategy` of the profile."),
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """Put a promoted version in front of users, by steps; it is taken back if it does harm.

    Several versions are compared with the deployed one in an experiment; the first that is shown
    to be better gets all traffic.
    """
    raise typer.Exit(deploy(versions, strategy, Settings.read(profile), screen()))


COMMAND = Command("Serve", command)
