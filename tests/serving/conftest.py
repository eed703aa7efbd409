"""Tiny models, a home with an empty ledger, and gateways."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.config.serving import Serving
from resources.home import Home
from tests.serving.gateway_server import call, eventually, fast, promote, running
from tests.serving.tiny_model import make_model
from tests.serving.traffic import Site


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("checkpoints")
    return {name: make_model(base / name, seed) for seed, name in enumerate(("old", "new"))}


@pytest.fixture(scope="session")
def served(checkpoints: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway without keys whose champion is `old`, for tests that leave it as it is."""
    from serving.gateway.app import make_app

    home = Home(tmp_path_factory.mktemp("served"))
    promote(home, "old", checkpoints["old"])
    with running(make_app(home, Serving())) as address:
        yield address


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def url(home: Home) -> Iterator[str]:
    from serving.gateway.app import make_app

    with running(make_app(home, fast())) as address:
        yield address


@pytest.fixture
def own(url: str, home: Home, checkpoints: dict[str, Path]) -> str:
    """A gateway of the test's own whose champion is `old`."""
    promote(home, "old", checkpoints["old"])
    eventually(lambda: call(f"{url}/health/ready")[0] == 200)
    return url
