"""Show, pause, resume or abort the release of a version."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table

from cli.app.commands import Command
from cli.app.options import JsonOption, ProfileOption
from cli.display import manifests
from cli.display.screen import print_json, screen
from pipelines.watch.text import print_text
from resources.registry.releases import Kind, NoRelease, Release, Releases
from resources.settings import Settings

if TYPE_CHECKING:
    from serving.release.view import Views

app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None)
REFRESH_S = 1.0
ReasonOption = Annotated[str, typer.Option(help="Reason, recorded with the event.")]


def current(settings: Settings) -> Release:
    """Return the open release. Raises NoRelease."""
    if (release := Releases(settings.ledger.place).current()) is None:
        raise NoRelease("no release is open: `ratchet deploy VERSION` opens one")
    return release


def move(kind: Kind, reason: str, settings: Settings, console: Console) -> int:
    """Record an event that a person decided on. Raises NoRelease, ReleaseMoved."""
    release = current(settings)
    why = reason or f"{kind} by hand"
    Releases(settings.ledger.place).append(release.last, kind, {"reasons": [why]})
    after = {"paused": "stays at its step", "resumed": "continues", "aborted": "gets no traffic"}
    console.print(f"{release.id}: version {release.challenger} {after[kind]}", highlight=False)
    return 0


def newest(settings: Settings) -> Release:
    """Return the newest release. Raises NoRelease without one."""
    if not (releases := Releases(settings.ledger.place).all()):
        raise NoRelease("no release yet: `ratchet deploy VERSION` opens one")
    return releases[-1]


def shown(settings: Settings, views: Views) -> tuple[Release, RenderableType]:
    """Return the newest release and its view. Raises NoRelease without one."""
    release = newest(settings)
    return release, rendered(views.of(release))


def rendered(view: dict[str, Any]) -> RenderableType:
    """Return the view of serving/release/view.py for a terminal."""
    marks = {"done": "[green]✓[/]", "now": "[bold cyan]▶[/]", "next": "[dim]·[/]"}
    steps = "  ".join(f"{marks[step['state']]} {step['title']}" for step in view["steps"])
    several = "s" if len(view["challengers"]) > 1 else ""
    challengers = f"version{several} {', '.join(map(str, view['challengers']))}"
    title = (
        f"[bold]{view['id']}[/] {view['strategy']}: {challengers} beside version "
        f"{view['champion']}, [bold]{view['state'].replace('_', ' ')}[/]"
    )
    lines = [title, f"{steps}  {'✓' if view['state'] == 'promoted' else '·'} all"]
    if view["waiting"]:
        lines.append(f"this step {view['waiting']}")
    parts: list[RenderableType] = ["\n".join(lines), ""]
    for arm in view["arms"]:
        if several:
            share = f"{100 * arm['share']:.3g} %" if arm["share"] else "dropped"
            parts.append(f"[bold]version {arm['version']}[/], {share}")
        parts += [_guardrails(arm), _conclusion(arm, view["state"]), ""]
    if not view["arms"]:
        parts += [f"- {escape(reason)}" for reason in view["decision"]["reasons"]]
    after = [f"{view['requests']} request{'s' * (view['requests'] != 1)}."]
    for event in view["events"]:
        moment = event["time"][:19].replace("T", " ")
        kind = event["kind"].replace("_", " ")
        after.append(f"[dim]{moment}[/] {kind}: {escape(' '.join(event['reasons']))}")
    return Group(*parts, "\n".join(after))


def _guardrails(arm: dict[str, Any]) -> Table:
    names = ("guardrail", "champion", "challenger", "difference", "tolerated", "p", "pairs")
    table = Table(*names, box=None, header_style="bold")
    for row in arm["guardrails"]:
        both = [_range(interval) for interval in row["arms"]] or ["-", "-"]
        breached = row["p_value"] <= row["level"]
        table.add_row(
            f"[red]{row['name']}[/]" if breached else row["name"],
            *both,
            f"{row['low']:+.3g} to {row['high']:+.3g}" if row["pairs"] else "-",
            f"{row['margin']:g}",
            f"{row['p_value']:.2g} (level {row['level']:.2g})",
            str(row["pairs"]),
        )
    return table


def _conclusion(arm: dict[str, Any], state: str) -> str:
    """Return quality, faults of the traffic, and the decision on a challenger."""
    lines = [_quality(arm["primary"]), *_senders(arm)]
    if arm["sample_ratio_p_value"] < 0.001:
        lines.append("[red]The arms did not get their shares of the traffic.[/]")
    moment = "by now" if state in ("running", "paused") else "when it ended"
    lines.append(f"decision {moment}: [bold]{arm['decision']['kind']}[/]")
    return "\n".join([*lines, *(f"- {escape(reason)}" for reason in arm["decision"]["reasons"])])


def _quality(primary: dict[str, Any] | None) -> str:
    if primary is None:
        return "Quality is not measured: no request carries tests, and nobody votes."
    low, high = primary["difference"]
    champion, challenger = map(_range, primary["arms"])
    text = (
        f"{primary['name']}: champion {champion}, challenger {challenger}, difference {low:+.3g} "
        f"to {high:+.3g} ({primary['pairs']} pair{'s' * (primary['pairs'] != 1)})."
    )
    if fixed := primary["fixed_horizon"]:
        welch = f"{fixed['difference']:+.3g}, p {fixed['p_value']:.2g}"
        text += f" Welch, if this is the only look: {welch}."
    return text


def _senders(arm: dict[str, Any]) -> list[str]:
    """Return lines on users and keys that send many tests or votes."""
    primary = arm["primary"] or {"outliers": {}, "outlying_keys": {}, "left_out": {}}
    lines = []
    for name, counts in (("user", primary["outliers"]), ("key", primary["outlying_keys"])):
        lines += [
            f"[yellow]{name} {escape(who)} sent {number} values, far more than others[/]"
            for who, number in list(counts.items())[:3]
        ]
    left_out = primary["left_out"] or arm["left_out"]
    lines += [
        f"[yellow]key {escape(key)}: {number} more users do not count[/]"
        for key, number in list(left_out.items())[:3]
    ]
    return lines


def _range(interval: list[float]) -> str:
    return f"{interval[0]:.3g} to {interval[1]:.3g}"


@app.command("status")
def status(
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until the release ends.")] = False,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Show the newest release: steps, guardrails of both versions, and the reasons."""
    from serving.gateway.observations import Observations
    from serving.release.view import Views

    settings, console = Settings.read(profile), screen()
    console.width = max(console.width, 120)
    views = Views(Observations(settings.home.observations, settings.home.database))
    if as_json:
        print_json(views.of(newest(settings)))
        return
    release, view = shown(settings, views)
    if not watch:
        print_text(console, view)
        raise typer.Exit(0)
    from rich.live import Live

    with Live(view, console=console) as live:
        while release.open:
            time.sleep(REFRESH_S)
            release, view = shown(settings, views)
            live.update(view)


@app.command("pause")
def pause(reason: ReasonOption = "", profile: ProfileOption = None) -> None:
    """Stay at the present step; guardrails keep watching."""
    raise typer.Exit(move("paused", reason, Settings.read(profile), screen()))


@app.command("resume")
def resume(reason: ReasonOption = "", profile: ProfileOption = None) -> None:
    """Continue a paused release; after a shadow it promotes."""
    raise typer.Exit(move("resumed", reason, Settings.read(profile), screen()))


@app.command("abort")
def abort(reason: ReasonOption = "", profile: ProfileOption = None) -> None:
    """End the release; all requests go to the champion."""
    raise typer.Exit(move("aborted", reason, Settings.read(profile), screen()))


app.command("manifests")(manifests.command)


COMMAND = Command("Serve", app)
