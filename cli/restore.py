"""Restore a home, or single files of it, from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.app.commands import Command
from cli.app.options import ProfileOption
from cli.backup import UrlArgument, url_of
from cli.display.screen import screen
from evaluation.promotion.comparison import count
from pipelines.watch.text import print_text
from resources.home import Home, NotReady
from resources.run_record import readable
from resources.settings import Settings


def command(
    url: UrlArgument = None,
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Files or folders to put back into the home. Default: everything."),
    ] = None,
    to: Annotated[
        str,
        typer.Option(
            help="Where artifacts go, any fsspec URL; then set `storage.root` to it. Default: "
            "`storage.root`, else the home."
        ),
    ] = "",
    at: Annotated[str, typer.Option(help="Id of a backup. Default: the newest.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only read the whole backup and check each hash.")
    ] = False,
    profile: ProfileOption = None,
) -> None:
    """Restore a backup into an empty home, or some files into this one.

    Each hash is checked. Exits 2 at the first file that was changed, and names it.
    """
    from resources.backup.databases import servers
    from resources.backup.restore import check, restore, restore_files

    settings = Settings.read(profile, unfinished=True)
    if url and _is_of(settings.home, url):
        backup = settings.profile.storage.backup or "URL"
        raise NotReady(
            f"{url} is a file of the home: give the place of the backups first, as in `ratchet "
            f"restore {backup} {url}`"
        )
    place, console = url_of(url, settings), screen()
    if dry_run:
        made = check(place, at)
        files_of = count(len(made.stored), "file")
        print_text(
            console, f"Backup {made.id} in {place.url} is whole: {files_of}, each as written"
        )
    elif files:
        for name in restore_files(place, settings.home, files, at):
            print_text(console, f"restored {settings.home.path / name}")
        decided = {each.id: each.decision for each in readable(settings.home.runs)}
        settings.ledger.compare({id: kind for id, kind in decided.items() if kind})
    else:
        root = to or settings.profile.storage.root
        made = restore(place, settings.home, root, servers(settings.profile), at)
        if settings.chosen:  # it may name other databases than that of the backup
            settings.home.profile_file.unlink(missing_ok=True)
            settings.remember()
        print_text(
            console,
            f"Restored {settings.home.path} from the backup {made.id}: champion "
            f"{made.champion or 'none'}. `ratchet registry verify` checks all of it",
        )
        if root != made.root:
            then = (
                f"{root}: set storage.root to it" if root else "the home: leave storage.root empty"
            )
            print_text(console, f"Artifacts are now in {then}")


def _is_of(home: Home, name: str) -> bool:
    """Return whether a name is of a file or folder in the home, where no backup can be."""
    path = Path(name).absolute()
    return path.is_relative_to(home.path.absolute()) or (
        not path.exists() and (home.path / name).exists()
    )


COMMAND = Command("Run", command)
