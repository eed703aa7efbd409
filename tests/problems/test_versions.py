"""Two versions of a dataset, and one problem's way through the stages, told from what lies in the store."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.manifest import Manifest
from artifacts.store import Artifact, Store
from problems.cleaning.curation import curate
from problems.columns import ProblemError
from problems.dataset.card import write_dataset
from problems.dataset.diff import compare, difference, named
from problems.dataset.evidence import write_evidence
from problems.dataset.history import find, history
from problems.difficulty.difficulty import rank, write_ranks
from problems.difficulty.item_response import fit, write_scale
from problems.schema import Problem, write_parquet

LONG = "Write a function that gives the number x times two and then one more, for every whole number x there is."


def toy(key: str, statement: str | None = None) -> Problem:
    program = f"def f(x):\n    return x + {sum(key.encode())}\n"
    return Problem(
        f"toy/{key}",
        "toy",
        statement or f"Now add {key}.",
        "call",
        ({"args": [1], "expected": key},),
        "f",
        solutions=(program,),
        licence="MIT",
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
    """Raw, verified and clean problems as the stages leave them. gone: ids that verification removes, with the reason."""
    raw = published(store, "raw_problems", problems, {}, [])
    rows = [
        {"problem_id": key, "reason": reason, "detail": ""} for key, reason in (gone or {}).items()
    ]
    kept = [problem for problem in problems if problem.problem_id not in (gone or {})]
    verified = published(store, "verified_problems", kept, {"raw_problems": raw.content_hash}, rows)
    curated = curate(kept, [problem for problem in problems if problem.gated])
    with store.draft("datasets", "clean_problems") as folder:
        write_parquet(curated.kept, folder / "problems.parquet")
        (folder / "removed.json").write_text(
            json.dumps([asdict(row) for row in curated.removed]), encoding="utf-8"
        )
        write_evidence(curated, folder)
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
def test_what_came_and_went_and_changed_adds_up(
    before: set[str], after: set[str], reworded: set[str]
) -> None:
    old, new = (
        [toy(key) for key in before],
        [toy(key, "Again." if key in reworded else None) for key in after],
    )
    found = difference(old, new)
    assert len(old) + len(found.added) - len(found.removed) == len(new)
    assert found.changed == {
        f"toy/{key}": ("statement",) for key in sorted(before & after & reworded)
    }
    assert difference(new, new) == difference(new, new[::-1]) and not difference(new, new).changed


def test_a_problem_that_went_has_the_reason_of_the_stage_that_removed_it(tmp_path: Path) -> None:
    store, problems = Store(tmp_path), [toy(key) for key in "abcd"]
    first = cleaned(store, problems)
    second = cleaned(
        store,
        [toy("a"), toy("b"), replace(toy("c"), licence="unknown"), toy("e")],
        {"toy/b": "tests too weak"},
    )
    found = compare(store, first, second)
    assert (
        found.added == ("toy/e",)
        and found.removed["toy/b"] == "tests too weak"
        and found.removed["toy/d"] == "not among what came in"
    )
    assert found.removed["toy/c"].startswith("licence refused: unknown")
    assert found.counts == {"toy": (4, 2)}


def test_versions_are_named_by_hash_and_by_time_and_an_unknown_one_says_what_there_is(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    first, second = cleaned(store, [toy("a")]), cleaned(store, [toy("b")])
    assert named(store, "current") == second and named(store, "previous") == first == named(
        store, first.content_hash[:12]
    )
    assert (
        named(store, store.require("datasets", "verified_problems").content_hash[:8]).manifest.name
        == "verified_problems"
    )
    with pytest.raises(
        ProblemError,
        match=rf"no dataset 'fffff': there are: .*{first.content_hash[:12]} \(clean_problems",
    ):
        named(store, "fffff")
    with pytest.raises(ProblemError, match="none yet"):
        named(Store(tmp_path / "empty"), "current")


def test_a_problem_tells_its_way_and_where_it_ended(tmp_path: Path) -> None:
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
    with store.draft("datasets", "item_response") as folder:
        write_scale(fit({("c", f"toy/good@{good.content_hash[:12]}"): (2, 1)}), folder)
        store.publish(
            folder,
            Manifest(
                kind="datasets",
                name="item_response",
                key="s",
                content_hash="",
                facts={"checkpoints": {"c": "someone"}},
            ),
        )

    def told(key: str) -> tuple[list[bool | None], str]:
        steps = history(store, find(store, f"toy/{key}"))
        return [step.went for step in steps if step.went is not None], " / ".join(
            step.said for step in steps
        )

    assert told("weak") == ([True, False], "of toy, part train, licence MIT / tests too weak")
    went, said = told("copy")
    assert (
        went == [True, True, False]
        and "overlaps a gated problem: same statement as toy/g" in said
        and "like toy/g: same statement" in said
    )
    went, said = told("good")
    assert (
        went == [True, True, True]
        and "someone solved it 1 of 2 times" in said
        and "difficulty +0.00" in said
        and "by the weights" in said
    )
    with pytest.raises(ProblemError, match="ids look like toy/good"):
        find(store, "toy/god")
