"""Differences of two dataset versions, and the history of a problem through the stages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.manifest import Manifest
from artifacts.store import Artifact, Store
from problems.cleaning.curation import curate
from problems.columns import ProblemError
from problems.dataset.dataset_files import write_dataset
from problems.dataset.diff import compare, difference, find_dataset
from problems.dataset.history import find, history
from problems.difficulty.difficulty import rank, write_ranks
from problems.schema import Problem, write_parquet
from tests.problems.test_curation import toy

LONG = (
    "Write a function that gives the number x times two and then one more, for every whole "
    "number x there is."
)


def published(
    store: Store,
    name: str,
    problems: list[Problem],
    inputs: dict[str, str],
    removed: list[dict[str, str]],
) -> Artifact:
    key = f"{name}-{len(store.versions('datasets', name))}"
    with store.draft("datasets", name) as folder:
        write_parquet(problems, folder / "problems.parquet")
        (folder / "removed.json").write_text(json.dumps(removed), encoding="utf-8")
        return store.publish(
            folder, Manifest(kind="datasets", name=name, key=key, content_hash="", inputs=inputs)
        )


def cleaned(store: Store, problems: list[Problem], gone: dict[str, str] | None = None) -> Artifact:
    """Publish raw, verified and clean problems; gone: removed id -> reason of verification."""
    raw = published(store, "raw_problems", problems, {}, [])
    rows = [
        {"problem_id": key, "reason": reason, "detail": ""} for key, reason in (gone or {}).items()
    ]
    remaining = [problem for problem in problems if problem.problem_id not in (gone or {})]
    verified = published(
        store, "verified_problems", remaining, {"raw_problems": raw.content_hash}, rows
    )
    curated = curate(remaining, [problem for problem in problems if problem.gated])
    with store.draft("datasets", "clean_problems") as folder:
        write_dataset(curated, [curated.stage], folder)
        inputs = {"raw_problems": raw.content_hash, "verified_problems": verified.content_hash}
        key = f"clean-{len(store.versions('datasets', 'clean_problems'))}"
        return store.publish(
            folder,
            Manifest(
                kind="datasets", name="clean_problems", key=key, content_hash="", inputs=inputs
            ),
        )


@given(
    st.sets(st.sampled_from("abcdef")),
    st.sets(st.sampled_from("abcdef")),
    st.sets(st.sampled_from("abcdef")),
)
def test_added_removed_and_changed_problems_add_up(
    before: set[str], after: set[str], reworded: set[str]
) -> None:
    old, new = (
        [toy(key) for key in before],
        [toy(key, "Again." if key in reworded else None) for key in after],
    )
    changes = difference(old, new)
    assert len(old) + len(changes.added) - len(changes.removed) == len(new)
    assert changes.changed == {
        f"toy/{key}": ("statement",) for key in sorted(before & after & reworded)
    }
    assert difference(new, new) == difference(new, new[::-1])
    assert not difference(new, new).changed


def test_a_removed_problem_has_the_reason_of_its_stage(tmp_path: Path) -> None:
    store, problems = Store(tmp_path), [toy(key) for key in "abcd"]
    first = cleaned(store, problems)
    second = cleaned(
        store,
        [toy("a"), toy("b"), replace(toy("c"), licence="unknown"), toy("e")],
        {"toy/b": "tests too weak"},
    )
    changes = compare(store, first, second)
    assert changes.added == ("toy/e",)
    assert changes.removed["toy/b"] == "tests too weak"
    assert "toy/d" in changes.removed
    assert changes.removed["toy/c"].startswith("licence refused: unknown")
    assert changes.counts == {"toy": (4, 2)}


def test_dataset_versions_are_found_by_hash_and_by_age(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    first, second = cleaned(store, [toy("a")]), cleaned(store, [toy("b")])
    assert find_dataset(store, "current") == second
    assert find_dataset(store, "previous") == first == find_dataset(store, first.content_hash[:12])
    assert (
        find_dataset(
            store, store.require("datasets", "verified_problems").content_hash[:8]
        ).manifest.name
        == "verified_problems"
    )
    with pytest.raises(
        ProblemError,
        match=rf"'fffff'.*{first.content_hash[:12]} \(clean_problems",
    ):
        find_dataset(store, "fffff")
    with pytest.raises(ProblemError):
        find_dataset(Store(tmp_path / "empty"), "current")


def test_the_history_of_a_problem_names_its_stages(tmp_path: Path) -> None:
    store = Store(tmp_path)
    gated, copy, good = replace(toy("g", LONG), gated=True), toy("copy", LONG.upper()), toy("good")
    cleaned(store, [gated, copy, good, toy("weak")], {"toy/weak": "tests too weak"})
    with store.draft("datasets", "difficulty_rankings") as folder:
        ranks = rank({"toy/good": [True, False]}, {"toy/good": good.content_hash}, "c" * 64)
        write_ranks(ranks, folder / "ranks.parquet")
        store.publish(
            folder,
            Manifest(
                kind="datasets",
                name="difficulty_rankings",
                key="r",
                content_hash="",
                facts={"policy": "someone"},
            ),
        )

    current = {name: store.require("datasets", name) for name in store.names("datasets")}
    rankings = store.versions("datasets", "difficulty_rankings")

    def story_of(key: str) -> tuple[list[bool | None], str]:
        steps = history(current, rankings, find(current, f"toy/{key}"))
        return [step.went for step in steps if step.went is not None], " / ".join(
            step.result for step in steps
        )

    assert story_of("weak")[0] == [True, False]
    assert all(part in story_of("weak")[1] for part in ("train", "MIT", "tests too weak"))
    went, story = story_of("copy")
    assert went == [True, True, False]
    assert "overlaps a gated problem" in story
    assert "toy/g" in story
    went, story = story_of("good")
    assert went == [True, True, True]
    assert "1 of 2" in story
    assert "weights" in story
    with pytest.raises(ProblemError, match="toy/good"):
        find(current, "toy/god")
