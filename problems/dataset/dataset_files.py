"""Write all files of a dataset: problems, verl's rows, features, weights, evidence, charts, card.

In: the kept problems in shards, and why the others were removed. Out: a folder. The graph's stage
and the distributed path both write it here, so the same problems give the same bytes. In memory are
a few rows, and some 60 bytes per problem while the difficulty is computed.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts.folder import Folder
from problems.cleaning.curation import Curated
from problems.dataset.balance import SCHEMA as WEIGHT
from problems.dataset.balance import Drawn, Share, Sizes, Weight, level, weights_of, weights_table
from problems.dataset.card import (
    CARD,
    DIFFICULTY,
    FEATURES,
    FUNNEL,
    WEIGHTS,
    DatasetSummary,
    card,
    spaced,
)
from problems.dataset.charts import BUCKETS, bucket_of, funnel_chart, stacked
from problems.dataset.evidence import Evidence, evidence_of, write_evidence
from problems.dataset.rows_json import json_list
from problems.dataset.shards import ROW_GROUP, SPLITS, Shards, write_shard, write_tables
from problems.difficulty.features import SCHEMA as FEATURE
from problems.difficulty.features import SCORED, static_scores
from problems.funnel import Removed, Stage

PROBLEMS, REMOVED = "problems.parquet", "removed.json"


def write_dataset(curated: Curated, stages: Sequence[Stage], folder: Path) -> None:
    """Write the files of a set in memory; see `write_files`."""
    with tempfile.TemporaryDirectory() as scratch:
        name = write_shard(curated.problems, Folder(scratch), "all")
        shards = Shards(Folder(scratch), [name])
        write_files(shards, curated.removed, evidence_of(curated), stages, folder)


def write_files(
    shards: Shards,
    removed: Iterable[Removed],
    evidence: Evidence,
    stages: Sequence[Stage],
    folder: Path,
) -> None:
    """Fill a folder, except for the gated problems and the manifest.

    removed: by this stage. stages: the whole funnel, for the card.
    """
    shards.write_problems(folder / PROBLEMS)
    for split in SPLITS:
        shards.write_verl(split, folder / "verl" / f"{split}.parquet")
    difficulty = _write_features(shards, folder / FEATURES)
    shares = _write_weights(shards, difficulty, folder / WEIGHTS)
    with (folder / REMOVED).open("w", encoding="utf-8") as file:
        file.writelines(json_list(map(asdict, removed)))
    write_evidence(evidence, folder)
    _created(folder / FUNNEL).write_text(funnel_chart(stages), encoding="utf-8")
    _created(folder / DIFFICULTY).write_text(_histogram(shards, difficulty), encoding="utf-8")
    text = card(_summary(shards), evidence, stages, shares)
    (folder / CARD).write_text(text, encoding="utf-8")


def _created(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _write_features(shards: Shards, path: Path) -> NDArray[np.float64]:
    """Write one row per problem with its static difficulty, by id; return the difficulties."""
    names = [field.name for field in FEATURE if field.name != "difficulty"]
    count = sum(len(table) for table in shards.tables("facts", ["split"]))
    scores = static_scores((_column(shards, name, count) for name in SCORED), count)

    def tables() -> Iterator[pa.Table]:
        first = 0
        for table in shards.tables("facts", names):
            column = pa.array(scores[first : first + len(table)])
            yield table.select(names).append_column("difficulty", column)
            first += len(table)

    write_tables(tables(), FEATURE, path)
    return scores


def _column(shards: Shards, name: str, count: int) -> NDArray[np.float64]:
    """Return a count of all problems; NaN for None."""
    numbers, first = np.empty(count), 0
    for table in shards.tables("facts", [name]):
        values = table[name].cast(pa.float64()).to_numpy()
        numbers[first : first + len(table)] = values
        first += len(table)
    return numbers


def _write_weights(shards: Shards, difficulty: NDArray[np.float64], path: Path) -> list[Share]:
    """Write the weights of the training problems; return `balance.shares`."""
    sizes = Sizes()

    def facts() -> Iterator[tuple[str, Drawn]]:
        columns = ("source", "split", "problem_id", "style", "tags")
        for (source, split, *row), score in zip(shards.facts(*columns), difficulty, strict=True):
            if split == "train":
                problem_id, style, tags = row
                yield source, Drawn(problem_id, style, tags, level(float(score)))

    def counted() -> Iterator[Weight]:
        weights = weights_of(lambda: (drawn for _, drawn in facts()))
        for (source, drawn), weight in zip(facts(), weights, strict=True):
            sizes.add(source, drawn.tags, weight)
            yield weight

    weights = counted()
    tables = iter(lambda: weights_table(islice(weights, ROW_GROUP)), WEIGHT.empty_table())
    write_tables(tables, WEIGHT, path)
    return sizes.shares()


def _histogram(shards: Shards, difficulty: NDArray[np.float64]) -> str:
    counts: dict[str, list[int]] = {}
    for (source,), score in zip(shards.facts("source"), difficulty, strict=True):
        counts.setdefault(source, [0] * BUCKETS)[bucket_of(float(score))] += 1
    return stacked(counts, "static difficulty")


def _summary(shards: Shards) -> DatasetSummary:
    """Count what the card says of the problems, and read the examples."""
    parts, licences = Counter[Any](), Counter[Any]()
    places: dict[str, list[int]] = {}
    for source, split, made_by, licence in shards.facts("source", "split", "made_by", "licence"):
        parts[source, split, made_by] += 1
        licences[licence, source] += 1
    numbers = Counter[str]()
    for source, split in shards.facts("source", "split"):
        if split != "demonstrations":
            numbers[source] += 1
    shown = spaced(dict(numbers))
    numbers.clear()
    for place, (source, split) in enumerate(shards.facts("source", "split")):
        if split != "demonstrations":
            if numbers[source] in shown[source]:
                places.setdefault(source, []).append(place)
            numbers[source] += 1
    in_order = [place for source in shown for place in places.get(source, [])]
    problems = shards.problems(in_order)
    return DatasetSummary(
        parts.total(),
        _set_hash(shards),
        parts,
        licences,
        [problems[place] for place in in_order],
        [share for (share,) in shards.facts("agreement") if share is not None],
    )


def _set_hash(shards: Shards) -> str:
    """Compute `schema.set_hash` from the facts, which are in the order of the ids."""
    digest, before = hashlib.sha256(b"["), b""
    for pair in shards.facts("problem_id", "content_hash"):
        digest.update(before + json.dumps(pair, separators=(",", ":")).encode())
        before = b","
    digest.update(b"]")
    return digest.hexdigest()
