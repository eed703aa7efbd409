"""Send messages from outside the daemon, also about a missing night, backup or daemon."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.app.commands import Command
from cli.app.options import ProfileOption
from cli.notify import NOBODY
from evaluation.promotion.comparison import count
from resources.home import NotReady
from resources.settings import Settings


def command(
    every: Annotated[
        float, typer.Option(min=0, help="Seconds between two checks; 0: check once and exit.")
    ] = 0.0,
    profile: ProfileOption = None,
) -> None:
    """Send what `notify` of the profile asks for, from outside the daemon.

    It also tells of a night, a backup or a daemon that is absent. Run it from cron, or as a service
    with `--every 60`. Each message is sent once. Exits 1 if a receiver could not be
    reached, or its variable is not set.
    """
    from pipelines import instance
    from pipelines.notices import send_due, send_without_dagster

    settings = Settings.read(profile)
    if not settings.profile.notify.receivers:
        raise NotReady(NOBODY.format(settings.reference))
    settings.home.make()
    instance.prepare(settings.home, settings.profile.orchestration)
    while True:
        now = datetime.now(UTC)
        try:
            with instance.opened(settings) as dagster:
                sent, problems = send_due(settings, dagster, now)
        except Exception as error:  # its database is away: people have to hear of it
            text = " ".join(str(error).split())[:500]
            sent, problems = send_without_dagster(settings, text, now)
            problems.append(text)
        if sent:
            print(f"sent {count(sent, 'message')}", flush=True)
        for problem in problems:
            print(f"error: {problem}", file=sys.stderr, flush=True)
        if not every:
            raise typer.Exit(int(bool(problems)))
        time.sleep(every)


COMMAND = Command("Run", command)
