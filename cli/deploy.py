"""Put a promoted version in front of users by steps, or compare several in an experiment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table

from cli.app.commands import Command
from cli.app.confirm import confirmed
from cli.app.options import ProfileOption, YesOption
from cli.display.screen import screen
from pipelines.watch.text import print_text
from resources.config.release import Strategy
from resources.registry.releases import NoRelease, Releases
from resources.registry.versions import find
from resources.settings import Settings

if TYPE_CHECKING:
    from serving.release.forecast import StepForecast
    from serving.release.opening import ReleaseProposal
    from serving.release.plan import ReleasePlan


def deploy(
    versions: Sequence[str],
    strategy: Strategy | None,
    yes: bool,
    settings: Settings,
    console: Console,
) -> int:
    """Print what a release needs, and open it. Raises NoRelease, UnknownVersion, and
    CorruptArtifact if a version's files are not those that the ledger names.
    """
    from artifacts.pull import pull_champion
    from serving.gateway.observations import Observations
    from serving.release.forecast import forecast
    from serving.release.opening import propose, trusted_keys

    ledger = settings.ledger
    entries = [find(settings.history, version)[-1] for version in versions]
    if not settings.profile.serving.upstream:  # there the files are on another machine
        for entry in entries:
            pull_champion(settings.store, entry.path, entry.checkpoint_hash)
    releases, release = Releases(ledger.place), settings.profile.release
    proposal = propose(
        ledger,
        releases,
        release,
        *(entry.version for entry in entries),
        strategy=strategy,
        trusted=trusted_keys(settings.home, release),
    )
    if now := releases.current():  # not after a person was asked
        raise NoRelease(
            f"{now.id} of version {now.challenger} is {now.state}: `ratchet release abort` ends it"
        )
    rows = forecast(
        proposal.plan, Observations(settings.home.observations, settings.home.database), time.time()
    )
    print_text(console, Group(*_told(proposal), *_needs(proposal.plan, rows)))
    question = _question(proposal, rows)
    if question and not confirmed(f"{question} Start?", yes):
        raise NoRelease("nothing was started")
    opened = proposal.open(releases, f"ratchet deploy {' '.join(versions)}")
    print_text(
        console,
        f"{opened.id} is open: a running `ratchet serve` carries it out, `ratchet release status` "
        "shows it",
    )
    return 0


def _told(proposal: ReleaseProposal) -> list[str]:
    plan, several = proposal.plan, len(proposal.challengers) > 1
    named = f"version{'s' if several else ''} {', '.join(map(str, proposal.challengers))}"
    lines = [f"{named} beside version {proposal.champion}, {plan.strategy}"]
    if plan.experiment:
        return [*lines, f"{plan.steps[0].title} each; until a gain above {plan.gain:g} is shown"]
    return lines


def _needs(plan: ReleasePlan, rows: Sequence[StepForecast]) -> list[RenderableType]:
    """Return a table of the steps; nothing for a release without any."""
    if plan.experiment or not rows:
        return []
    table = Table("step", "pairs", "requests", "time", "", box=None)
    for row in rows:
        what = "until every guardrail is cleared" if row.decides else ""
        count = f"{row.requests:,}" if row.requests else "-"
        table.add_row(row.title, f"{row.pairs:,}" if row.pairs else "-", count, _time(row), what)
    times = "at the traffic of the last day"
    if rows[0].days is None:
        times = "the time is not known: no request was answered in the last day"
    return [table, f"{times}; a user counts once, with the first request"]


def _time(row: StepForecast) -> str:
    if row.days is None:
        return "-"
    return f"{row.days:,.1f} days" if row.days >= 1 else f"{24 * row.days:.1f} hours"


def _question(proposal: ReleaseProposal, rows: Sequence[StepForecast]) -> str:
    """Return what a person should agree to; "" for a release that surprises nobody."""
    plan, lines = proposal.plan, []
    if proposal.answering in proposal.challengers and plan.steps:
        shares = sum(step.share for step in plan.steps[:1] if not step.shadow)
        back = 100 * (1 - shares * len(proposal.challengers))
        lines.append(
            f"Version {proposal.answering} answers everything now; this moves {back:.3g} % back to "
            f"version {proposal.champion}."
        )
    days = sum(row.days or 0.0 for row in rows)
    if days > plan.max_days and not plan.experiment:
        way = (
            "`--strategy shadow` makes a pair of every request, and you may send recorded requests "
            "again"
        )
        if plan.strategy == "shadow":
            way = "you may send recorded requests again"
        lines.append(
            f"At this traffic it takes about {days:,.0f} days, and ends undecided after "
            f"{plan.max_days:g}: {way}."
        )
    return " ".join(lines)


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
    yes: YesOption = False,
    profile: ProfileOption = None,
) -> None:
    """Put a promoted version in front of users, by steps; it is taken back if it does harm.

    Several versions are compared with the deployed one in an experiment; the first that is shown
    to be better gets all traffic.
    """
    raise typer.Exit(deploy(versions, strategy, yes, Settings.read(profile), screen()))


COMMAND = Command("Serve", command)
