"""`ratchet config show` lists every setting with its value and the layer that set it."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from rich.console import Console

from cli.config import leaves, show_settings
from resources.config.load import ProfileError, load_profile
from resources.settings import Settings


def shown(section: str, changes: list[str], changed: bool) -> tuple[int, str]:
    out = StringIO()
    settings = Settings.read("small", changes)
    code = show_settings(section, settings, changed, Console(file=out, width=2000))
    return code, out.getvalue()


def test_a_value_is_shown_with_its_layer() -> None:
    code, text = shown("training", ["training.algorithm=rloo"], False)
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()[1:]}
    assert code == 0
    assert rows["training.algorithm"] == ["rloo", "--set", "training.algorithm=rloo"]
    assert rows["training.steps"] == ["8", "small.yaml"]
    assert rows["training.prompt_tokens"][-1] == "default"


def test_every_setting_of_the_profile_is_listed() -> None:
    _, text = shown("", [], False)
    assert len(text.splitlines()) == 1 + len(list(leaves(load_profile("small"))))


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(ProfileError, match=r"polcy\.alpha.*policy\.alpha"):
        shown("polcy.alpha", [], False)


def test_json_has_each_value_with_its_layer(capsys: pytest.CaptureFixture[str]) -> None:
    changes = ['training.frozen=["model.layers.0.*"]', "evaluation.benchmarks=[{name: heldout}]"]
    settings = Settings.read("small", changes)
    assert show_settings("", settings, False, Console(), as_json=True) == 0
    rows = {row.pop("setting"): row for row in json.loads(capsys.readouterr().out)}
    assert rows["training.steps"] == {"value": 8, "from": "small.yaml"}
    assert rows["training.frozen"]["value"] == ["model.layers.0.*"]
    assert rows["evaluation.benchmarks"]["value"][0]["name"] == "heldout"
