"""`ratchet data production`: what the gateway could not solve becomes a source of problems."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from artifacts.atomic import write_atomic
from cli.data.show import READS
from cli.data.sources import add, remove
from pipelines.watch.text import print_text
from problems.catalogue import read_sources
from problems.production import SOURCE
from problems.reading.place import Place
from resources.home import Home


def data_production(home: Home, console: Console) -> int:
    """Write the kept requests of the keys that consent now, and make them the source `production`.

    Without any, the source is removed. Its samples stay. Raises CorruptArtifact for broken keys.
    """
    from serving.gateway.candidates import Candidates
    from serving.gateway.keys import Keys

    consenting = [key.id for key in Keys(home.api_keys).all() if key.consent]
    rows = list(Candidates(home.candidates).rows(consenting))
    path, place = home.path / "production" / "problems.jsonl", read_sources(home.path).get(SOURCE)
    if not rows:
        if place:
            remove(SOURCE, home, console)
        _write(path, "")
        console.print(f"no failed request is kept; keys that consent: {len(consenting)}")
        return 0
    _write(path, "".join(json.dumps(row) + "\n" for row in rows))
    code = add(SOURCE, replace(place or Place(), path=path), home, console)
    print_text(
        console,
        f"`ratchet data sample {SOURCE}` lets a model write programs for them; those whose samples "
        f"agree under the tests are kept when {READS} reads the problems",
    )
    return code


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text)
    path.chmod(0o600)
