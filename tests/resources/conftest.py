"""Fixtures: an empty ledger in a file, and on a real Postgres server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.registry.ledger import Ledger
from tests.resources.postgres import Server, postgres


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    """Return an empty ledger: in a file, then on a real server."""
    if request.param == "sqlite":
        return Ledger(tmp_path / "a home with spaces" / "promotions.db")
    server: Server = request.getfixturevalue("server")
    return Ledger(server.fresh(f"ledger {time.time_ns()}".replace(" ", "_")))
