"""Tiny models, a home with an empty ledger, and a gateway in front of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.home import Home
from tests.serving.gateway_server import fast, running
from tests.serving.tiny_model import make_model


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("checkpoints")
    return {name: make_model(base / name, seed) for seed, name in enumerate(("old", "new"))}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def url(home: Home) -> Iterator[str]:
    from serving.gateway.app import make_app

    with running(make_app(home, fast())) as address:
        yield address
