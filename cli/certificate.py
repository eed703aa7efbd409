"""Write a decision's certificate, which anyone can recompute without Ratchet."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.app.commands import Command
from cli.app.options import ProfileOption, VersionArgument
from cli.display.screen import screen
from pipelines.watch.text import print_text
from resources.registry.ledger import named
from resources.registry.versions import find
from resources.settings import Settings


def write(version: str, to: Path, settings: Settings, console: Console) -> int:
    """Write the certificate of a version's newest decision, and next to it the script that checks
    it. Return 1 if the version has no decision with a comparison.

    Raises UnknownVersion, and NotReady if its scores are gone.
    """
    from assets.contestant_scores import read_scores
    from evaluation.promotion import check_certificate
    from evaluation.promotion.certificate import certificate
    from evaluation.promotion.gate import Decision

    entries = find(settings.history, version)
    decided = [entry for entry in entries if entry.kind in ("promote", "refuse")]
    if not decided:
        console.print(f"{named(entries[-1])} was compared with no champion: no certificate")
        return 1
    entry = decided[-1]
    scores = read_scores(settings.store.require("scores", entry.run_id))
    decision = Decision.model_validate(entry.decision)
    data = certificate(decision, scores.champion, scores.challenger)
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    script = to.with_name("check_certificate.py")
    shutil.copyfile(str(check_certificate.__file__), script)
    digest = check_certificate.hash_of(data["hashes"])
    check = shlex.join(["python3", str(script), str(to), digest])
    print_text(console, f"{to} is written. Check it: {check}")
    return 0


def command(
    version: VersionArgument = "champion",
    *,
    to: Annotated[Path, typer.Option("--out", help="The new file.")] = Path("certificate.json"),
    profile: ProfileOption = None,
) -> None:
    """Write a decision's certificate, which anyone can recompute without Ratchet.

    It has the verdicts, the paired test, its level and the hashes. A script of the standard
    library, written next to it, checks them.
    """
    raise typer.Exit(write(version, to, Settings.read(profile), screen()))


COMMAND = Command("Promote and explain", command)
