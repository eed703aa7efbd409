"""Fixtures: a home for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines.home_builder import HomeBuilder


@pytest.fixture
def home_builder(tmp_path: Path) -> HomeBuilder:
    return HomeBuilder(tmp_path / "a home")
