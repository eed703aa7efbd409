"""Fixtures for tests of the data stages: homes with a small family of problems."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest

from resources.run_context import RunContext
from tests.assets.data_stages import at, refresh


@pytest.fixture
def run_context(few_simple_problems: None, tmp_path: Path) -> RunContext:
    return at(tmp_path / "a home")


@pytest.fixture(scope="module")
def template(few_simple_problems: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("template") / "home"
    with dg.instance_for_test() as instance:
        assert refresh(at(home), instance).success
    return home


@pytest.fixture
def refreshed(template: Path, tmp_path: Path) -> RunContext:
    """Return a home whose stages are up to date."""
    shutil.copytree(template, tmp_path / "refreshed")
    return at(tmp_path / "refreshed")
