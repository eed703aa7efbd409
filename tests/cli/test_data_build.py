"""`ratchet data build` makes a dataset that another home takes by its URL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assets.fetched_dataset import dataset_manifest
from problems.schema import read_parquet
from resources.home import NotReady
from tests.cli.conftest import Called

# A profile with a base reads the user's sources alone.
PROFILE = """\
base: a/model
evaluation: {benchmarks: [mbpp+]}
policy: {benchmark: mbpp+}
verification: {mutants: 4, repeats: 1}
augmentation: {kinds: []}
"""
ROWS = """\
problem_id,split,statement,style,entry_point,tests,solutions
triple,train,"Write f(x), three times x.",call,f,"[{""args"": [2], ""expected"": 6}]",\
"def f(x):
    return 3 * x"
last,validation,"Write f(x), the last of a list.",call,f,"[{""args"": [[1, 2]], ""expected"": 2}]",\
"def f(x):
    return x[-1]"
"""


@pytest.mark.slow
def test_a_built_dataset_is_taken_by_another_home(ratchet: Called, tmp_path: Path) -> None:
    profile, rows, out = tmp_path / "p.yaml", tmp_path / "mine.csv", f"file://{tmp_path}/out"
    profile.write_text(PROFILE, encoding="utf-8")
    rows.write_text(ROWS, encoding="utf-8")
    build = ("data", "build", "--profile", str(profile))
    code, output, error = ratchet(tmp_path / "home", *build, str(rows), "--out", out)
    assert code == 0, error
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["content_hash"] in output
    assert {"README.md", "verl/train.parquet", "weights.parquet"} <= manifest["files"].keys()
    code, output, error = ratchet(tmp_path / "other", *build, "--set", f"dataset={out}")
    assert code == 0, error
    assert manifest["content_hash"] in output
    assert "problems read" not in output
    (tmp_path / "out" / "verl" / "train.parquet").write_bytes(b"other")
    code, _, error = ratchet(tmp_path / "third", *build, "--set", f"dataset={out}")
    assert code == 2
    assert "verl/train.parquet" in error


@pytest.mark.slow
def test_a_dataset_of_ones_own_has_no_shipped_problems(ratchet: Called, tmp_path: Path) -> None:
    rows, out = tmp_path / "mine.csv", tmp_path / "out"
    rows.write_text(ROWS, encoding="utf-8")
    code, _, error = ratchet(tmp_path / "home", "data", "build", str(rows), "--out", str(out))
    assert code == 0, error
    assert {problem.source for problem in read_parquet(out / "problems.parquet")} == {"mine"}


@pytest.mark.parametrize("url", ["nosuch://x", "memory://empty", "/nowhere/at/all"])
def test_a_url_without_a_dataset_is_refused_before_the_start(url: str) -> None:
    with pytest.raises(NotReady, match=f"dataset: {url}.*data build"):
        dataset_manifest(url)
