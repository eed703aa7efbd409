"""Dagster's asset selections and Hydra's overrides are parsed in one process."""

from __future__ import annotations

import dagster as dg
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from pipelines.definitions import defs


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("group:promotion", {"promoted_model"}),
        ("+key:verified_problems", {"verified_problems", "raw_problems"}),
        ("key:base_model or key:sft_checkpoint", {"base_model", "sft_checkpoint"}),
    ],
)
def test_a_selection_gives_its_assets(selection: str, expected: set[str]) -> None:
    graph = defs.resolve_asset_graph()
    found = dg.AssetSelection.from_string(selection).resolve(graph)
    assert {key.to_user_string() for key in found} & expected == expected


def test_hydra_parses_overrides_after_it() -> None:
    dg.AssetSelection.from_string("key:base_model")
    [override] = OverridesParser.create().parse_overrides(["trainer.nodes=[1, 2]"])
    assert override.value() == [1, 2]
