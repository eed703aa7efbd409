"""A home with promotions for each test of a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "a home")
