"""Back up the home to another disk or an object store."""

from __future__ import annotations

from typing import Annotated

import typer

from artifacts.folder import Folder
from cli.app.commands import Command
from cli.app.options import JsonOption, ProfileOption
from cli.display.screen import print_json, screen
from evaluation.promotion.comparison import count
from pipelines.watch.text import print_text
from resources.config.profile import Profile
from resources.home import NotReady
from resources.settings import Settings

UrlArgument = Annotated[
    str | None,
    typer.Argument(
        help="A folder or any fsspec URL (s3://bucket/ratchet). Default: `storage.backup`."
    ),
]


def url_of(url: str | None, settings: Settings) -> Folder:
    """Return the given URL, else the profile's. Raises NotReady without one."""
    if place := url or settings.profile.storage.backup:
        return Folder(place)
    raise NotReady("no place for backups: give a URL, or set storage.backup in the profile")


def left_out(profile: Profile) -> list[str]:
    """Return what belongs to the home, but lies where no backup of it reads."""
    named = profile.storage
    missing = [f"MLflow's runs on {named.mlflow} (storage.mlflow)"] if named.mlflow else []
    if profile.orchestration.launcher == "kubernetes" and named.root:
        missing.append(f"the logs of run pods in {named.root.rstrip('/')}/logs")
    return missing


def command(
    url: UrlArgument = None,
    keep: Annotated[int, typer.Option(min=1, help="Backups that stay, newest first.")] = 30,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Back up ledger, records, champion and keys, also while a run is in progress.

    Only what is new is copied. Databases on Postgres need pg_dump.
    """
    from resources.backup.back_up import back_up

    settings = Settings.read(profile)
    place = url_of(url, settings)
    summary = back_up(settings, place, keep)
    made = summary.index
    total = sum(stored.size for stored in made.stored)
    if as_json:
        print_json(
            {
                "id": made.id,
                "champion": made.champion,
                "ledger": made.ledger,
                "files": len(made.stored),
                "bytes": total,
                "new_files": summary.new_files,
                "new_bytes": summary.new_bytes,
                "removed_backups": summary.removed_backups,
                "left_out": left_out(settings.profile),
            }
        )
        return
    print_text(
        screen(),
        f"Backup {made.id} in {place.url}: champion {made.champion or 'none'}, "
        f"{count(len(made.stored), 'file')} of {total / 2**20:,.1f} MiB; new were "
        f"{summary.new_files:,} of {summary.new_bytes / 2**20:,.1f} MiB",
    )
    for missing in left_out(settings.profile):
        print_text(screen(), f"Not in it: {missing}; back this up where it is")
    if old := summary.removed_backups:
        print_text(screen(), f"Removed {count(len(old), 'older backup')}")


COMMAND = Command("Run", command)
