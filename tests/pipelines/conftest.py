"""Fixtures: a home and a Dagster instance for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.pipelines.home_builder import HomeBuilder


@pytest.fixture
def home_builder(tmp_path: Path) -> HomeBuilder:
    return HomeBuilder(tmp_path / "a home")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as opened:  # on disk, because a schedule opens it by its reference
        yield opened
