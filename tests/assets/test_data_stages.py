"""The data stages, run by Dagster: datasets are reproducible, reused, and free of bad rows."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from rich.console import Console

from artifacts.hashing import hash_file
from artifacts.manifest import Manifest
from cli.data.limits import data_limits
from cli.lookup.damage import Damage
from cli.status import stale
from problems.catalogue import add_source
from problems.dataset.evidence import CONTAMINATION, DUPLICATES, SUSPECTS, read_suspects
from problems.schema import read_parquet, write_parquet
from resources.home import NotReady
from resources.run_context import RunContext
from resources.run_record import PipelineRun
from resources.settings import Settings
from tests.assets.data_stages import STAGES, datasets, refresh

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_simple_problems")]


def test_a_second_refresh_changes_nothing(
    refreshed: RunContext, instance: dg.DagsterInstance
) -> None:
    first = datasets(refreshed)
    assert refresh(refreshed, instance).success
    assert datasets(refreshed) == first
    lines = (
        (refreshed.home.runs / "data" / "progress.jsonl").read_text(encoding="utf-8").splitlines()
    )
    assert [
        json.loads(line)["event"] for line in lines if json.loads(line)["event"] in ("end", "found")
    ] == ["end"] * len(STAGES) + ["found"] * len(STAGES)


def test_changed_limits_give_another_dataset_and_can_be_undone(
    refreshed: RunContext, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, console = datasets(refreshed), Console(file=StringIO(), width=150)
    monkeypatch.setenv("RATCHET_HOME", str(refreshed.home.path))
    assert data_limits(True, Settings.read(), console) == 0
    printed = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert not any(line.endswith(" ") for line in printed)  # a file gets no padding
    assert refresh(refreshed, instance).success
    second = datasets(refreshed)
    assert second["raw_problems"] == first["raw_problems"]
    assert "limits" in second["verified_problems"].manifest.inputs
    assert second["verified_problems"].content_hash != first["verified_problems"].content_hash
    before, after = (
        {each.limits for each in read_parquet(made["clean_problems"].path / "problems.parquet")}
        for made in (first, second)
    )
    assert after != before
    assert max(limits.cpu_s for limits in after) <= max(limits.cpu_s for limits in before)
    assert stale(Settings.read(), Damage()) == []
    (refreshed.home.path / "limits.json").unlink()
    assert stale(Settings.read(), Damage()) != []
    assert refresh(refreshed, instance).success
    assert datasets(refreshed) == first


def test_limits_of_earlier_problems_are_refused(
    refreshed: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = datasets(refreshed)["raw_problems"]
    problems = read_parquet(raw.path / "problems.parquet")
    with refreshed.store.draft("datasets", "raw_problems") as folder:
        write_parquet(problems[1:], folder / "problems.parquet")
        changed = Manifest(kind="datasets", name="raw_problems", key="changed", content_hash="")
        refreshed.store.publish(folder, changed)
    monkeypatch.setenv("RATCHET_HOME", str(refreshed.home.path))
    with pytest.raises(NotReady, match="ratchet data build"):
        data_limits(True, Settings.read(), Console(file=StringIO()))


def test_two_homes_get_the_same_datasets(
    refreshed: RunContext, run_context: RunContext, instance: dg.DagsterInstance
) -> None:
    assert refresh(run_context, instance).success
    assert {n: a.content_hash for n, a in datasets(run_context).items()} == {
        n: a.content_hash for n, a in datasets(refreshed).items()
    }


def test_a_half_written_dataset_is_rebuilt_with_the_same_content(
    refreshed: RunContext, instance: dg.DagsterInstance
) -> None:
    clean = datasets(refreshed)["clean_problems"]
    (clean.path / "manifest.json").unlink()
    (clean.path / "problems.parquet").write_bytes(b"half")
    assert refresh(refreshed, instance).success
    rebuilt = datasets(refreshed)["clean_problems"]
    assert rebuilt.content_hash == clean.content_hash
    refreshed.store.verify(rebuilt)


def test_sources_are_partitions_and_bad_rows_are_reported(
    run_context: RunContext, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    own = tmp_path / "own.jsonl"
    good: dict[str, Any] = {
        "id": "1",
        "statement": "Write f(x) that doubles x.",
        "style": "call",
        "entry_point": "f",
    }
    good |= {"tests": [{"args": [1], "expected": 2}], "solutions": ["def f(x):\n    return 2 * x"]}
    wrong = good | {
        "id": "2",
        "statement": "Write f(x) that triples x.",
        "solutions": ["def f(x):\n    return x"],
    }
    own.write_text(f"{json.dumps(good)}\n{json.dumps(wrong)}\n{{broken\n", encoding="utf-8")
    add_source(run_context.home.path, "own", own)
    assert refresh(run_context, instance).success
    assert set(instance.get_materialized_partitions(dg.AssetKey("problem_sources"))) == {
        "embedded",
        "simple",
        "own",
    }
    artifacts = datasets(run_context)
    [rejected] = json.loads(
        (artifacts["raw_problems"].path / "rejected.json").read_text(encoding="utf-8")
    )
    [removed] = json.loads(
        (artifacts["verified_problems"].path / "removed.json").read_text(encoding="utf-8")
    )
    assert rejected["row"] == "own.jsonl: line 3"
    assert removed["problem_id"] == "own/2"
    assert "solution" in removed["reason"]
    assert "own/1" in {
        problem.problem_id
        for problem in read_parquet(artifacts["clean_problems"].path / "problems.parquet")
    }


def test_a_copy_of_a_gated_problem_is_removed_with_evidence(
    run_context: RunContext, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    own = tmp_path / "own.jsonl"
    statement = (
        "Write f(x) that gives the number x times 7 and then 3 more, for every whole number x."
    )
    row: dict[str, Any] = {
        "style": "call",
        "entry_point": "f",
        "tests": [{"args": [x], "expected": 7 * x + 3} for x in (1, 4, 10)],
        "solutions": ["def f(x):\n    return 7 * x + 3", "def f(x):\n    return 3 + x * 7"],
    }
    rows = [
        row | {"id": "original", "statement": statement, "gated": True},
        row | {"id": "copied", "statement": f"Please: {statement}"},
    ]
    rows.append(
        row
        | {
            "id": "secret",
            "statement": "Write f(x), of which jane.doe@mailbox.org knows the rest.",
            "tests": [{"args": [2], "expected": 17}],
        }
    )
    own.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    add_source(run_context.home.path, "own", own)
    assert refresh(run_context, instance).success
    clean = datasets(run_context)["clean_problems"]
    removed = {
        row["problem_id"]: row["reason"]
        for row in json.loads((clean.path / "removed.json").read_text(encoding="utf-8"))
    }
    # Variants of the copy are created before the leak is detected.
    variants = {name: reason for name, reason in removed.items() if name.startswith("augmented/")}
    expected = {
        "own/original": "gated",
        "own/copied": "overlaps a gated problem",
        "own/secret": "secret or personal data",
    }
    assert removed == expected | dict.fromkeys(variants, "overlaps a gated problem")
    # The problem with personal data has no variants.
    assert (
        datasets(run_context)["augmented_problems"].manifest.facts["not_parents"][
            "secret or personal data"
        ]
        == 1
    )
    assert variants
    assert not any(
        problem.parents
        for problem in read_parquet(clean.path / "problems.parquet")
        if "own/copied" in problem.parents
    )
    assert read_suspects(clean.path) == {"own": []}
    assert clean.manifest.facts["reports"] == {
        name: hash_file(clean.path / name) for name in (CONTAMINATION, DUPLICATES, SUSPECTS)
    }
    run_context.store.verify(clean)


def test_a_missing_source_fails_with_its_name(
    run_context: RunContext, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text("{}\n", encoding="utf-8")
    add_source(run_context.home.path, "own", own)
    own.unlink()
    assert not refresh(run_context, instance).success
    record = PipelineRun(run_context.home.runs, "data").record
    assert record.failures == 1
    assert str(own) in record.error
