"""A checkpoint is named by its name in the store, or as the version that it became."""

from __future__ import annotations

import pytest

from cli.evaluate.checkpoint import checkpoint_name
from resources.settings import Settings
from tests.pipelines.home_builder import HomeBuilder


@pytest.mark.parametrize("name", ["first", "1", "champion"])
def test_a_version_stands_for_its_checkpoint(
    home_builder: HomeBuilder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    home_builder.promoted("first")
    monkeypatch.setenv("RATCHET_HOME", str(home_builder.run_context.home.path))
    assert checkpoint_name(name, Settings.read("small")) == "first"


def test_an_unknown_checkpoint_lists_the_known_names(
    home_builder: HomeBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_builder.promoted("first")
    monkeypatch.setenv("RATCHET_HOME", str(home_builder.run_context.home.path))
    with pytest.raises(FileNotFoundError, match=r"'second'.*first"):
        checkpoint_name("second", Settings.read("small"))
