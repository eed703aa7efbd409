"""Two versions of a dataset side by side: what came, what went and why, what changed.

In: artifacts of the store. Out: plain data; `ratchet data diff` shows it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from artifacts.store import Artifact, Store
from problems.columns import ProblemError
from problems.schema import Problem, read_parquet, to_row

NAMES = (
    "clean_problems",
    "verified_problems",
    "augmented_problems",
    "synthetic_problems",
    "raw_problems",
)
LEAST_PREFIX = 4


@dataclass(frozen=True)
class Difference:
    """Ids in order. removed: id to the reason, where the newer version knows one. changed: id to the columns that differ."""

    added: tuple[str, ...]
    removed: dict[str, str]
    changed: dict[str, tuple[str, ...]]
    counts: dict[str, tuple[int, int]]  # by source, before and after


def difference(
    before: Sequence[Problem], after: Sequence[Problem], reasons: dict[str, str] | None = None
) -> Difference:
    """reasons: why a problem is not in `after`, by its id."""
    old, new = (
        {problem.problem_id: problem for problem in problems} for problems in (before, after)
    )
    kept = sorted(old.keys() & new.keys())
    changed = {key: columns for key in kept if (columns := _columns(old[key], new[key]))}
    removed = {
        key: (reasons or {}).get(key, "not among what came in")
        for key in sorted(old.keys() - new.keys())
    }
    one, other = (Counter(problem.source for problem in problems) for problems in (before, after))
    counts = {source: (one[source], other[source]) for source in sorted(one.keys() | other.keys())}
    return Difference(tuple(sorted(new.keys() - old.keys())), removed, changed, counts)


def _columns(one: Problem, other: Problem) -> tuple[str, ...]:
    rows = to_row(one), to_row(other)
    return tuple(
        sorted(
            name
            for name in rows[0].keys() | rows[1].keys()
            if rows[0].get(name) != rows[1].get(name)
        )
    )


def compare(store: Store, before: Artifact, after: Artifact) -> Difference:
    """The difference of two datasets, with the reasons that the newer one and the stages before it give."""
    one, other = (read_parquet(artifact.path / "problems.parquet") for artifact in (before, after))
    return difference(one, other, reasons(store, after))


def reasons(store: Store, artifact: Artifact) -> dict[str, str]:
    """Why a problem did not come into this dataset: in its own words, else in those of what it was made from, as far as the store has that still."""
    found: dict[str, str] = {}
    for name, content in artifact.manifest.inputs.items():
        if name in NAMES and (
            source := next(
                (each for each in store.versions("datasets", name) if each.content_hash == content),
                None,
            )
        ):
            found |= reasons(store, source)
    if (file := artifact.path / "removed.json").exists():
        rows = json.loads(file.read_text(encoding="utf-8"))
        found |= {
            row["problem_id"]: f"{row['reason']}: {row['detail']}".removesuffix(": ")
            for row in rows
        }
    return found


def named(store: Store, word: str) -> Artifact:
    """A version by `current`, `previous` (of clean_problems, by when they were made) or the beginning of its content hash.

    Raises ProblemError that lists what there is.
    """
    clean = store.versions("datasets", "clean_problems")
    now = store.current("datasets", "clean_problems")
    if word == "current" and now:
        return now
    older = [artifact for artifact in clean if now and artifact.manifest.key != now.manifest.key]
    if word == "previous" and older:
        return older[-1]
    there = [
        artifact
        for name in NAMES
        for artifact in reversed(
            clean if name == "clean_problems" else store.versions("datasets", name)
        )
    ]
    found = {
        artifact.content_hash: artifact
        for artifact in reversed(there)
        if len(word) >= LEAST_PREFIX and artifact.content_hash.startswith(word)
    }
    if len(found) == 1:
        return next(iter(found.values()))
    listed = ", ".join(
        f"{artifact.content_hash[:12]} ({artifact.manifest.name}, {artifact.manifest.created_at})"
        for artifact in there[:8]
    )
    said = f"{len(found)} datasets begin with {word!r}" if found else f"no dataset {word!r}"
    raise ProblemError(
        said, f"there are: {listed or 'none yet'}{', …' if len(there) > 8 else ''}", "data"
    )
