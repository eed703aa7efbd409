"""The walk from an artifact back to its sources, over manifests written by a real store."""

from __future__ import annotations

from pathlib import Path

import pytest

from artifacts.manifest import Manifest
from artifacts.passport import ManifestIndex, Passport, walk
from artifacts.store import Artifact, Store


def published(
    store: Store, kind: str, name: str, inputs: dict[str, str], text: str = "", **more: object
) -> Artifact:
    with store.draft(kind, name) as folder:
        (folder / "content").write_text(text or name, encoding="utf-8")
        manifest = Manifest(
            kind=kind, name=name, key=f"key of {name}", content_hash="", inputs=inputs, **more
        )  # type: ignore[arg-type]
        return store.publish(folder, manifest)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store in which two stages have identical content.

    The score's benchmark and the reward are not artifacts.
    """
    store = Store(tmp_path / "a store")
    raw = published(store, "datasets", "raw_problems", {"mine": "content of a source"})
    names, inputs = ("augmented_problems", "synthetic_problems"), {"raw_problems": raw.content_hash}
    parts = {
        name: published(store, "datasets", name, inputs, text="nothing").content_hash
        for name in names
    }
    clean = published(
        store,
        "datasets",
        "clean_problems",
        parts,
        facts={"reports": {"contamination.json": "c0ffee"}},
    )
    base = published(
        store, "checkpoints", "base_model", {"clean_problems": clean.content_hash}, seed=3
    )
    inputs = {"start": base.content_hash, "training_rows": clean.content_hash, "reward": "a reward"}
    model = published(store, "checkpoints", "chain-0001", inputs, seed=7, config={"steps": 2})
    inputs = {"checkpoint": model.content_hash, "benchmark": "tasks"}
    published(
        store,
        "scores",
        "chain-0001--heldout",
        inputs,
        config={"harness": "1"},
        isolation="all of it",
    )
    return store


def passport(store: Store, name: str = "chain-0001--heldout") -> Passport:
    index = ManifestIndex.of(store)
    return walk(
        next(
            index.node_of(m)
            for manifests in index.by_content.values()
            for m in manifests
            if m.name == name
        ),
        index,
    )


def test_the_passport_reaches_every_source_and_separates_equal_contents(store: Store) -> None:
    result = passport(store)
    assert [node.name for node in result.nodes] == [
        "chain-0001--heldout",
        "chain-0001",
        "benchmark",
        "base_model",
        "clean_problems",
        "reward",
        "augmented_problems",
        "synthetic_problems",
        "raw_problems",
        "mine",
    ]
    assert result.missing == []


def test_the_summary_has_the_main_facts(store: Store) -> None:
    summary = passport(store).summary()
    assert summary["dataset"] == store.require("datasets", "clean_problems").content_hash
    assert (summary["contamination_report"], summary["reward"]) == ("c0ffee", "a reward")
    assert (summary["harness"], summary["isolation"]) == (["1"], ["all of it"])
    assert summary["base_model"] == store.require("checkpoints", "base_model").content_hash
    assert (summary["base"], summary["base_licence"]) == ("made from scratch", None)
    assert summary["seeds"] == {"chain-0001": 7, "base_model": 3}
    assert summary["config"] == {"steps": 2}
    assert summary["code_versions"] == [
        store.require("checkpoints", "chain-0001").manifest.code_version
    ]


def test_only_a_missing_artifact_is_reported_as_missing(store: Store) -> None:
    gone = store.require("checkpoints", "base_model")
    (gone.path / "manifest.json").unlink()
    result = passport(store)
    assert result.missing == [f"start {gone.content_hash[:12]}"]
    assert not result.node("reward@a reward").missing


def test_a_source_on_the_hub_is_a_node(store: Store) -> None:
    index = ManifestIndex.of(store)
    clean = store.require("datasets", "clean_problems").manifest
    raw = clean.model_copy(update={"name": "raw_problems", "inputs": {"taco": "hub@1a2b"}})
    result = walk(index.node_of(raw), index)
    assert [result.node(id).name for _, id in result.nodes[0].made_from] == ["taco"]


def test_drafts_of_other_processes_are_ignored(store: Store) -> None:
    with store.draft("datasets", "raw_problems") as folder:
        (folder / "manifest.json").write_text('{"kind": "data')
        assert len(passport(store).nodes) == 10


def test_every_edge_of_the_json_connects_two_nodes(store: Store) -> None:
    graph = passport(store).as_json()
    ids = {node["id"] for node in graph["nodes"]}
    assert len(ids) == len(graph["nodes"])
    assert all({edge["from"], edge["to"]} <= ids for edge in graph["edges"])
    assert {edge["role"] for edge in graph["edges"] if edge["to"].startswith("chain-0001@")} == {
        "start",
        "training_rows",
        "reward",
    }


def test_mermaid_has_every_node(store: Store) -> None:
    result = passport(store)
    assert all(node.name in result.mermaid() for node in result.nodes)
