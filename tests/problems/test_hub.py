"""Datasets of the hub over HTTP: a process whose HF_ENDPOINT is a server over a folder."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.problems.hub_server import commit, hub
from tests.problems.published_rows import verl

pytestmark = pytest.mark.slow  # importing datasets takes seconds

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    {
        "prompt": "Double it.",
        "answer": "def f(x):\n    return 2 * x",
        "cases": ["assert f(1) == 2", "assert f(2) == 4"],
        "level": 1,
    },
    {
        "prompt": "Halve it.",
        "answer": "def g(x):\n    return x / 2",
        "cases": ["assert g(2) == 1"],
        "level": 2,
    },
    {"prompt": "No test.", "answer": "def h(x):\n    return x", "cases": [], "level": 2},
]
MAPPED = {
    "columns": {"statement": "prompt", "solutions": "answer", "tests": "cases"},
    "constants": {"style": "assert"},
}
APPS = {
    "problem_id": 7,
    "question": "Print it.",
    "difficulty": "x",
    "url": "u",
    "starter_code": "",
    "solutions": '["print(1)"]',
    "input_output": '{"inputs": ["1"], "outputs": ["1"]}',
}
SAYS = """
import json, sys
from pathlib import Path
from problems.columns import ProblemError
from problems.reading.hub import commit_of
from problems.reading.place import Place
from problems.sources.registry import load
for line in sys.stdin:
    name, place = json.loads(line)
    try:
        place = Place.from_json(place)
        commit = commit_of(place.hub, place.revision) if place.hub else ""
        loaded = load(name, place)
        rows = [
            [each.problem_id, each.gated, each.split, len(each.tests), each.entry_point]
            for each in loaded.problems
        ]
        print("SAYS", json.dumps([commit, rows, [[r.row, r.reason] for r in loaded.rejected]]))
    except ProblemError as error:
        print("SAYS", json.dumps(str(error)))
"""


def parquet(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def load_in_process(endpoint: str, cache: Path, *sources: tuple[str, Any]) -> list[Any]:
    """Load each source in a process with this endpoint and return its results."""
    environment = os.environ | {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(cache),
        "PYTHONPATH": str(ROOT),
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    environment = {
        key: value
        for key, value in environment.items()
        if key not in ("HF_HUB_OFFLINE", "HF_TOKEN", "HF_DATASETS_OFFLINE")
    }
    ran = subprocess.run(
        [sys.executable, "-c", SAYS],
        input="".join(json.dumps(each) + "\n" for each in sources),
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    results = [
        json.loads(line.removeprefix("SAYS "))
        for line in ran.stdout.splitlines()
        if line.startswith("SAYS ")
    ]
    assert len(results) == len(sources), ran.stderr[-3000:]
    return results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("hub")
    root = folder / "hub"
    split = {
        "data/train-00000-of-00001.parquet": parquet(ROWS[:2]),
        "data/test-00000-of-00001.parquet": parquet(ROWS[2:]),
    }
    commits = {
        "first": commit(root, "me/mine", split),
        "second": commit(root, "me/mine", {"rows.jsonl": json.dumps(ROWS[0]).encode()}),
    }
    lines = {f"{split}.jsonl": json.dumps(APPS).encode() + b"\n" for split in ("train", "test")}
    commit(
        root,
        "codeparrot/apps",
        lines | {"apps.py": b"raise SystemExit('a loading script was run')"},
    )
    commit(root, "me/closed", split, gated=True)
    published = [verl({"inputs": ["2\n"], "outputs": ["4\n"]}), verl({"inputs": []})]
    commit(root, "me/verl", {"data/train-00000-of-00001.parquet": parquet(published)})
    sources = {
        "first": (
            "mine",
            {"hub": "me/mine", "revision": commits["first"], "commit": commits["first"], **MAPPED},
        ),
        "second": ("mine", {"hub": "me/mine", **MAPPED}),
        "apps": ("apps", None),
        "published": ("mine", {"hub": "me/verl", "constants": {"licence": "MIT"}}),
        "near": (
            "mine",
            {
                "hub": "me/mine",
                "columns": MAPPED["columns"] | {"statement": "promt"},
                "constants": MAPPED["constants"],
            },
        ),
        "nowhere": ("mine", {"hub": "me/nowhere"}),
        "closed": ("mine", {"hub": "me/closed"}),
        "revision": ("mine", {"hub": "me/mine", "revision": "v9"}),
    }
    with hub(root) as endpoint:
        outcomes = dict(
            zip(
                sources, load_in_process(endpoint, folder / "cache", *sources.values()), strict=True
            )
        )
    [outcomes["unreachable"]] = load_in_process(
        endpoint, folder / "empty", ("mine", {"hub": "me/mine"})
    )
    return outcomes | {"commits": commits}


def test_a_hub_dataset_is_read_at_its_commit_with_mapped_columns(
    results: dict[str, Any],
) -> None:
    commit, rows, rejected = results["first"]
    assert commit == results["commits"]["first"] != results["commits"]["second"]
    assert [row[3:] for row in rows] == [[2, "f"], [1, "g"]]
    assert all(row[0].startswith("mine/") for row in rows)
    assert len(rejected) == 1
    assert rejected[0][0] == "me/mine: test row 0"
    assert "column tests" in rejected[0][1]


def test_rows_of_the_hub_load_as_published(results: dict[str, Any]) -> None:
    _, rows, rejected = results["published"]
    assert [row[3] for row in rows] == [1]
    assert [row[0] for row in rejected] == ["me/verl: train row 1"]


def test_without_a_revision_the_main_branch_is_read(results: dict[str, Any]) -> None:
    commit, rows, rejected = results["second"]
    assert commit == results["commits"]["second"]
    assert len(rows) == 1
    assert not rejected


def test_the_loading_script_of_a_hub_dataset_is_not_run(
    results: dict[str, Any],
) -> None:
    _, rows, rejected = results["apps"]
    assert [row[:3] for row in rows] == [
        ["apps/train-0007", False, "train"],
        ["apps/test-0007", True, "heldout"],
    ]
    assert not rejected


def test_a_missing_column_of_the_hub_is_named_with_the_nearest(results: dict[str, Any]) -> None:
    reason = results["near"][2][0][1]
    assert "'promt'" in reason
    assert "'prompt'" in reason


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("nowhere", "me/nowhere"),
        ("closed", "me/closed is gated"),
        ("revision", "--revision"),
        ("unreachable", "--path"),
    ],
)
def test_a_refusal_of_the_hub_is_a_one_line_error(
    results: dict[str, Any], case: str, words: str
) -> None:
    assert isinstance(results[case], str)
    assert words in results[case]
    assert "\n" not in results[case]
