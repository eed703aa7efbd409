"""The gate's facts about a challenger come from store and ledger and do not change."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from artifacts.integrity import CorruptArtifact, hashes_of, read_manifest
from artifacts.manifest import Manifest
from artifacts.store import Artifact, Store
from assets.gate_facts import (
    alpha_rows,
    earlier_tries,
    facts_of,
    gates_of,
    missing_links,
    weights_of,
)
from assets.promotion import gate
from assets.report import decision_of
from evaluation.promotion.policy import Policy
from evaluation.statistics.alpha_spending import next_level
from resources.config.load import ProfileError
from resources.run_context import RunContext, StageContext
from resources.run_record import PipelineRun
from resources.settings import Settings
from tests.pipelines.home_builder import HomeBuilder, scorecard_of

FIRST_LEVEL = next_level("lord", Policy().alpha, [])


@pytest.fixture
def home_builder(tmp_path: Path) -> HomeBuilder:
    return HomeBuilder(tmp_path / "home").with_validation_problems()


def artifact(
    store: Store,
    kind: str,
    name: str,
    inputs: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
) -> Manifest:
    with store.draft(kind, name) as folder:
        for file, text in ({"content.txt": f"{kind} {name}"} | (files or {})).items():
            (folder / file).write_text(text, encoding="utf-8")
        return store.publish(
            folder, Manifest(kind=kind, name=name, key=name, content_hash="", inputs=inputs or {})
        ).manifest


def stage(home_builder: HomeBuilder, run_id: str) -> StageContext:
    pipeline_run = PipelineRun(home_builder.run_context.home.runs, run_id)
    with pipeline_run.stage("promoted_model") as report:
        return StageContext(home_builder.run_context, pipeline_run, report)


def challenge(
    home_builder: HomeBuilder,
    run_id: str,
    solved: int,
    version: str = "",
    copied: Artifact | None = None,
) -> StageContext:
    """Return the stage of a run whose challenger solves `solved` of 400 tasks; the champion 100.

    On all other benchmarks both are equal.
    """
    before = home_builder.run_context.ledger.champion()
    assert before is not None
    champion = home_builder.run_context.store.require("checkpoints", before.checkpoint)
    new, version = copied or home_builder.checkpoint(run_id), version or f"draw of {run_id}"
    home_builder.scored(
        run_id,
        "pipeline",
        {
            "champion": scorecard_of(champion, 100, 400, version),
            "challenger": scorecard_of(new, solved, 400, version),
        },
        champion,
    )
    return stage(home_builder, run_id)


def test_a_passport_is_complete_until_a_link_is_missing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    raw = artifact(store, "datasets", "raw_problems", {"a source": "0" * 64})
    rows = artifact(store, "datasets", "training_rows", {"raw_problems": raw.content_hash})
    start = artifact(store, "checkpoints", "chain-0001-sft")
    end = artifact(
        store,
        "checkpoints",
        "chain-0001",
        {"training_rows": rows.content_hash, "start": start.content_hash, "reward": "1" * 64},
    )
    assert missing_links(store, end) == ()
    (tmp_path / "datasets" / "raw_problems" / raw.key / "manifest.json").unlink()
    assert missing_links(store, end) == (f"raw_problems {raw.content_hash[:12]}",)


def test_a_base_model_of_which_no_version_is_left_is_missing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    base = artifact(store, "checkpoints", "base_model")
    end = artifact(store, "checkpoints", "chain-0001", {"base_model": base.content_hash})
    assert missing_links(store, end) == ()
    shutil.rmtree(tmp_path / "checkpoints" / "base_model")
    assert missing_links(store, end) == (f"base_model {base.content_hash[:12]}",)


def test_a_repeated_decision_is_the_same(
    home_builder: HomeBuilder,
) -> None:
    home_builder.promoted("first")
    stage_context = challenge(home_builder, "chain-0002", 160)
    entry = gate(stage_context)
    assert entry.kind == "promote"
    assert entry.decision["level"] == FIRST_LEVEL
    assert gate(stage_context).entry == entry.entry
    challenge(home_builder, "chain-0003", 100)
    assert decision_of_run(home_builder, "chain-0002") == entry.decision


@pytest.mark.parametrize(
    "pattern",
    [
        "checkpoints/chain-0002/*/model.safetensors",
        "checkpoints/first/*/model.safetensors",
        "scores/chain-0002/*/challenger--heldout.json",
        "datasets/clean_problems/*/suspects.json",
    ],
)
def test_the_gate_decides_nothing_on_a_changed_file(
    home_builder: HomeBuilder, pattern: str
) -> None:
    home_builder.promoted("first")
    stage_context = challenge(home_builder, "chain-0002", 160)
    [path] = home_builder.run_context.home.path.glob(pattern)
    path.write_bytes(path.read_bytes() + b" ")
    # Make the cached hashes claim that the file is unchanged.
    cache = path.parent.with_name(f".{path.parent.name}.files.json")
    hashes_of(path.parent, cache)
    manifest = read_manifest(path.parent / "manifest.json")
    hashes = json.loads(cache.read_text(encoding="utf-8"))
    hashes[path.name][-1] = (manifest.files or {})[path.name]
    cache.write_text(json.dumps(hashes), encoding="utf-8")
    with pytest.raises(CorruptArtifact, match=path.name.partition(".")[0]):
        gate(stage_context)
    assert [entry.run_id for entry in home_builder.run_context.ledger.history()] == ["first"]


def decision_of_run(home_builder: HomeBuilder, run_id: str) -> dict[str, object]:
    from assets.contestant_scores import read_scores

    return decision_of(
        read_scores(home_builder.run_context.store.require("scores", run_id)),
        stage(home_builder, run_id),
    ).model_dump(mode="json")


def test_the_same_weights_are_decided_on_once(home_builder: HomeBuilder) -> None:
    home_builder.promoted("first")
    assert gate(challenge(home_builder, "chain-0002", 101)).kind == "refuse"
    store = home_builder.run_context.store
    with store.draft("checkpoints", "copied") as folder:
        (folder / "model.safetensors").write_text("chain-0002", encoding="utf-8")
        (folder / "README.md").write_text("a copy", encoding="utf-8")
        copied = store.publish(
            folder, Manifest(kind="checkpoints", name="copied", key="copied", content_hash="")
        )
    assert copied.content_hash != store.require("checkpoints", "chain-0002").content_hash
    second = gate(challenge(home_builder, "copied", 160, copied=copied))
    assert second.kind == "refuse"
    assert any("chain-0002" in str(reason) for reason in second.decision["reasons"])


def test_divided_weights_are_the_same_weights(home_builder: HomeBuilder) -> None:
    home_builder.promoted("first")
    store = home_builder.run_context.store
    tensors = {f"layer{i}": np.full(4, i, dtype=np.float32) for i in range(4)}

    def published(name: str, shards: int) -> Artifact:
        with store.draft("checkpoints", name) as folder:
            for shard in range(shards):
                part = {key: tensors[key] for key in sorted(tensors)[shard::shards]}
                save_file(part, folder / f"model-{shard}.safetensors")
            manifest = Manifest(kind="checkpoints", name=name, key=name, content_hash="")
            return store.publish(folder, manifest)

    gate(challenge(home_builder, "whole", 101, copied=published("whole", 1)))
    ledger = home_builder.run_context.ledger
    [*_, entry] = ledger.history()
    assert entry.decision["facts"]["weights"]
    divided = published("divided", 3)
    challenger = scorecard_of(divided, 160, 400, "draw of divided")
    assert earlier_tries([entry], challenger, weights_of(store, divided.content_hash)) == (
        f"whole ({entry.created_at[:10]}): refuse",
    )
    assert gate(challenge(home_builder, "divided", 160, copied=divided)).kind == "refuse"


def test_every_gate_is_in_the_ledger_of_alpha(home_builder: HomeBuilder) -> None:
    home_builder.promoted("first")
    for number, solved in ((2, 101), (3, 160)):
        gate(challenge(home_builder, f"chain-000{number}", solved))
    gates = gates_of(home_builder.run_context.ledger.history())
    assert [(g.run_id, g.significant) for g in gates] == [
        ("chain-0002", False),
        ("chain-0003", True),
    ]
    assert gates[0].level == FIRST_LEVEL > gates[1].level
    assert [row[0] for row in alpha_rows(gates)] == ["chain-0003", "chain-0002"]
    assert alpha_rows(gates)[0][-1] == f"{gates[0].level + gates[1].level:.3g}"


def test_the_gate_receives_suspect_tasks_and_measures(home_builder: HomeBuilder) -> None:
    suspects = {"heldout": [{"task": "t1", "problem_id": "x", "how": "solution"}], "mbpp": []}
    artifact(
        home_builder.run_context.store,
        "datasets",
        "clean_problems",
        files={"suspects.json": json.dumps(suspects)},
    )
    home_builder.promoted("first")
    stage_context = challenge(home_builder, "chain-0002", 160)
    facts = facts_of(
        stage_context,
        scorecard_of(
            home_builder.run_context.store.require("checkpoints", "chain-0002"), 160, 400, "v"
        ).model_copy(update={"measured": {"tokens": 800.0}}),
    )
    assert facts.suspects == {"heldout": ("t1",)}
    assert facts.measures == {
        "contamination": 1 / 400,
        "tokens": 2.0,
    }


def test_a_deciding_benchmark_without_scores_is_refused(
    home_builder: HomeBuilder, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text("policy: {benchmark: mbpp}", encoding="utf-8")
    home_builder.promoted("first")
    challenge(home_builder, "chain-0002", 160)
    home_builder.run_context = RunContext.of(
        Settings(home_builder.run_context.home, str(tmp_path / "mine.yaml"))
    )
    with pytest.raises(ProfileError, match=r"policy\.benchmark: mbpp"):
        decision_of_run(home_builder, "chain-0002")
