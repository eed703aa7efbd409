"""Fixtures for tests of the data stages: homes with a small family of problems."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from problems.sources import simple
from resources.run_context import RunContext
from tests.assets.data_stages import at, refresh


@pytest.fixture(scope="module")
def few_simple_problems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use three of the shipped simple problems; tests/problems/test_simple.py verifies all."""
    content = json.loads(simple.FILE.read_text(encoding="utf-8"))
    file = tmp_path_factory.mktemp("simple") / simple.FILE.name
    file.write_text(json.dumps(content | {"problems": content["problems"][:3]}), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simple, "FILE", file)
        yield


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
