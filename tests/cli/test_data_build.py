"""`ratchet data build` makes a dataset that another home takes by its URL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assets.fetched_dataset import dataset_manifest
from resources.home import NotReady
from tests.cli.test_cli import ratchet

PROFILE = """\
family: {demonstrations: 4, train: 4, validation: 2}
verification: {mutants: 4, repeats: 1}
augmentation: {kinds: []}
"""
ROW = (
    'triple,"Write triple(x), which returns x three times.",call,triple,'
    '"[{""args"": [2], ""expected"": 6}, {""args"": [-3], ""expected"": -9}]",'
    '"def triple(x):\n    return 3 * x"\n'
)


@pytest.mark.slow
def test_a_built_dataset_is_taken_by_another_home(tmp_path: Path) -> None:
    profile, rows, out = tmp_path / "p.yaml", tmp_path / "mine.csv", f"file://{tmp_path}/out"
    profile.write_text(PROFILE, encoding="utf-8")
    rows.write_text(
        f"problem_id,statement,style,entry_point,tests,solutions\n{ROW}", encoding="utf-8"
    )
    build = ("data", "build", "--profile", str(profile))
    made = ratchet(tmp_path / "home", *build, str(rows), "--out", out)
    assert made.returncode == 0, made.stderr
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["content_hash"] in made.stdout
    assert {"README.md", "verl/train.parquet", "weights.parquet"} <= manifest["files"].keys()
    taken = ratchet(tmp_path / "other", *build, "--set", f"dataset={out}")
    assert taken.returncode == 0 and manifest["content_hash"] in taken.stdout
    assert "problems read" not in taken.stdout


@pytest.mark.parametrize("url", ["nosuch://x", "memory://empty", "/nowhere/at/all"])
def test_a_url_without_a_dataset_is_refused_before_the_start(url: str) -> None:
    with pytest.raises(NotReady, match=f"dataset: {url}.*data build"):
        dataset_manifest(url)
