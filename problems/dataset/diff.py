"""Compare two versions of a dataset: what was added, removed and why, and what changed.

In: artifacts of the store. Out: plain data; `ratchet data diff` prints it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from artifacts.store import Artifact, Store
from problems.columns import ProblemError
from problems.dataset.history import REMOVING, SOURCES
from problems.schema import Problem, read_parquet, to_row

NAMES = (*REMOVING[::-1], *SOURCES)
MIN_PREFIX = 4


@dataclass(frozen=True)
class Difference:
    """The difference, with ids in order.

    removed: id to the reason, if the newer version knows one. changed: id to the columns that
    differ.
    """

    added: tuple[str, ...]
    removed: dict[str, str]
    changed: dict[str, tuple[str, ...]]
    counts: dict[str, tuple[int, int]]  # by source: problems before and after


def difference(
    before: Sequence[Problem], after: Sequence[Problem], reasons: dict[str, str] | None = None
) -> Difference:
    """Compare two sets. reasons: why a problem is not in `after`, by its id."""
    old, new = (
        {problem.problem_id: problem for problem in problems} for problems in (before, after)
    )
    common = sorted(old.keys() & new.keys())
    changed = {key: columns for key in common if (columns := _columns(old[key], new[key]))}
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
    """Compare two datasets, with the reasons given by the newer one and the stages before it."""
    one, other = (read_parquet(artifact.path / "problems.parquet") for artifact in (before, after))
    return difference(one, other, reasons(store, after))


def reasons(store: Store, artifact: Artifact) -> dict[str, str]:
    """Return why problems are not in this dataset, by id.

    The dataset's own reasons come first, then those of its inputs, as far as they are still in the
    store.
    """
    result: dict[str, str] = {}
    for name, content in artifact.manifest.inputs.items():
        if name in NAMES and (
            source := next(
                (each for each in store.versions("datasets", name) if each.content_hash == content),
                None,
            )
        ):
            result |= reasons(store, source)
    if (file := artifact.path / "removed.json").exists():
        rows = json.loads(file.read_text(encoding="utf-8"))
        result |= {
            row["problem_id"]: f"{row['reason']}: {row['detail']}".removesuffix(": ")
            for row in rows
        }
    return result


def find_dataset(store: Store, word: str) -> Artifact:
    """Return the version with that name.

    `word` is `current`, `previous` (both of clean_problems, by creation time) or the beginning of a
    content hash. Raises ProblemError that lists the versions.
    """
    clean = store.versions("datasets", "clean_problems")
    now = store.current("datasets", "clean_problems")
    if word == "current" and now:
        return now
    older = [artifact for artifact in clean if now and artifact.manifest.key != now.manifest.key]
    if word == "previous" and older:
        return older[-1]
    artifacts = [
        artifact
        for name in NAMES
        for artifact in reversed(
            clean if name == "clean_problems" else store.versions("datasets", name)
        )
    ]
    matches = {
        artifact.content_hash: artifact
        for artifact in reversed(artifacts)
        if len(word) >= MIN_PREFIX and artifact.content_hash.startswith(word)
    }
    if len(matches) == 1:
        return next(iter(matches.values()))
    listed = ", ".join(
        f"{artifact.content_hash[:12]} ({artifact.manifest.name}, {artifact.manifest.created_at})"
        for artifact in artifacts[:8]
    )
    reason = f"{len(matches)} datasets begin with {word!r}" if matches else f"no dataset {word!r}"
    raise ProblemError(
        reason, f"datasets: {listed or 'none yet'}{', …' if len(artifacts) > 8 else ''}", "data"
    )
