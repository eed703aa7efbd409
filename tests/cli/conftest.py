"""A home with promotions for each test of a command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.pipelines.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "a home")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:  # on disk: a schedule opens it by its reference
        yield made
