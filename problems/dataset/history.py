"""The history of one problem: its origin, the result of each stage, its measured difficulty.

In: the current datasets by name. Out: a line per stage; `ratchet data show` prints them.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from artifacts.store import Artifact
from problems.columns import ProblemError
from problems.dataset.balance import read_weights
from problems.dataset.card import FEATURES, WEIGHTS
from problems.dataset.evidence import CONTAMINATION, DUPLICATES
from problems.difficulty.difficulty import read_ranks
from problems.difficulty.features import read_difficulty
from problems.schema import Problem, from_row
from problems.verification.limits import MEASURED
from problems.verification.strength import FILE as STRENGTH

# Datasets where problems originate.
SOURCES = ("raw_problems", "augmented_problems", "synthetic_problems")
REMOVING = ("verified_problems", "clean_problems")
MAX_COMPARED = 20_000  # ids compared with a mistyped one


@dataclass(frozen=True)
class StageResult:
    """The result of a stage.

    went: True if the problem was kept, False if the stage removed it, None if it only reports.
    """

    stage: str
    result: str
    went: bool | None = None


def find(artifacts: Mapping[str, Artifact], problem_id: str) -> Problem:
    """Return the current version of a problem: clean, else verified, else as it arrived.

    Raises ProblemError with similar ids.
    """
    for name in (*REMOVING[::-1], *SOURCES):
        if artifact := artifacts.get(name):
            file = artifact.path / "problems.parquet"
            if rows := pq.read_table(file, filters=[("problem_id", "=", problem_id)]).to_pylist():
                return from_row(rows[0], str(file))
    near = _near(artifacts, problem_id)
    raise ProblemError(
        f"no problem {problem_id!r}",
        f"ids look like {', '.join(near) or 'source/key'}",
        "data show",
    )


def _near(artifacts: Mapping[str, Artifact], problem_id: str) -> list[str]:
    """Return ids of similar spelling, else the first id there is."""
    ids = [
        key
        for each in (artifacts[name] for name in SOURCES if name in artifacts)
        for key in pq.read_table(each.path / "problems.parquet", columns=["problem_id"])[
            "problem_id"
        ].to_pylist()
    ]
    return difflib.get_close_matches(problem_id, ids[:MAX_COMPARED], 3) or ids[:1]


def history(
    artifacts: Mapping[str, Artifact], rankings: Iterable[Artifact], problem: Problem
) -> list[StageResult]:
    """Return the steps in the order of the stages.

    rankings: the versions of `difficulty_rankings`, oldest first. A stage that has not run, or that
    the problem did not reach, has no step.
    """
    steps: list[StageResult] = []
    for name in SOURCES:
        if (artifact := artifacts.get(name)) and _has(artifact.path, problem):
            # Derived problems are verified in their own stage.
            steps += [
                StageResult(name, _origin(problem), True),
                *_verification_steps(artifact, problem),
            ]
    for name in REMOVING:
        artifact = artifacts.get(name)
        if artifact is None:
            continue
        details = _verification_steps if name == "verified_problems" else _evidence
        removal = next(
            (
                row
                for row in _json(artifact.path / "removed.json")
                if row["problem_id"] == problem.problem_id
            ),
            None,
        )
        if removal:
            return [
                *steps,
                StageResult(
                    name, f"{removal['reason']}: {removal['detail']}".removesuffix(": "), False
                ),
                *details(artifact, problem),
            ]
        if _has(artifact.path, problem):
            steps += [StageResult(name, "kept", True), *details(artifact, problem)]
    if (clean := artifacts.get("clean_problems")) and _has(clean.path, problem):
        steps += _difficulty(clean, rankings, problem)
    return steps


def _origin(problem: Problem) -> str:
    parents = problem.extra.get("parents")
    where = (
        f"made by {problem.extra.get('made_by', '?')} of {', '.join(map(str, parents))}"
        if isinstance(parents, list)
        else f"of {problem.source}"
    )
    return (
        f"{where}, part {problem.split}, licence "
        f"{problem.licence}{', gated: for evaluation only' if problem.gated else ''}"
    )


def _verification_steps(artifact: Artifact, problem: Problem) -> Iterator[StageResult]:
    """Yield the measurements of verification: the references' cost, the strength of the tests."""
    for row in _json(artifact.path / MEASURED):
        if row["problem_id"] == problem.problem_id:
            yield StageResult(
                "",
                (
                    f"its slowest test took a reference {row['wall_s']:.2g} s, the largest "
                    f"{row['peak_mb']:.0f} MiB"
                ),
            )
    if (artifact.path / STRENGTH).exists():
        if problem.agreement is not None:
            count = len(problem.samples)
            passing = f"{round(problem.agreement * count)} of {count} samples of a model"
            yield StageResult(
                "", f"verified by a solver, without a reference: {passing} pass its tests"
            )
        for row in pq.read_table(
            artifact.path / STRENGTH, filters=[("problem_id", "=", problem.problem_id)]
        ).to_pylist():
            added = f", {row['added_tests']} tests added" if row["added_tests"] else ""
            yield StageResult(
                "",
                (
                    f"{row['killed']} of {row['mutants']} broken copies of its solution are "
                    f"refused{added}"
                ),
            )


def _evidence(artifact: Artifact, problem: Problem) -> Iterator[StageResult]:
    for report in _json(artifact.path / CONTAMINATION):
        if report["problem_id"] == problem.problem_id:
            for row in report["resembles"]:
                what = "a leak" if row["leak"] else "a suspicion, which keeps the problem"
                how = f"{row['kind']} {row['detail']}".strip()
                yield StageResult("", f"like {row['gated_id']}: {how} ({what})")
    for group in _json(artifact.path / DUPLICATES)["groups"]:
        members = {member["problem_id"]: member for member in group["others"]}
        if problem.problem_id == group["kept"]:
            yield StageResult(
                "",
                (
                    f"kept of a group of {len(members) + 1} that are the same: {group['why']}; "
                    f"the others are {', '.join(sorted(members)[:5])}"
                ),
            )
        elif problem.problem_id in members:
            yield StageResult("", f"in a group of which {group['kept']} is kept: {group['why']}")


def _difficulty(
    clean: Artifact, rankings: Iterable[Artifact], problem: Problem
) -> Iterator[StageResult]:
    """Yield the static difficulty, then the difficulty measured with models."""
    score = read_difficulty(clean.path / FEATURES)[problem.problem_id]
    weight = next(
        (row for row in read_weights(clean.path / WEIGHTS) if row.problem_id == problem.problem_id),
        None,
    )
    weight_text = (
        f"; drawn {weight.weight:.2f} times as often as the mean problem by the weights"
        if weight
        else ""
    )
    yield StageResult("difficulty", f"static {score:.2f} of 1{weight_text}")
    for ranking in rankings:
        ranks = read_ranks(ranking.path / "ranks.parquet")
        for row in ranks:
            if (row.problem_id, row.problem_hash) == (problem.problem_id, problem.content_hash):
                who = ranking.manifest.facts.get("policy") or ranking.manifest.inputs["policy"][:12]
                place = f"{row.rank + 1} of {len(ranks)} from easy to hard"
                yield StageResult(
                    "ranked",
                    (
                        f"{who} solved it {row.passed} of {row.n} times ({row.low:.2f} to "
                        f"{row.high:.2f}), {place}"
                    ),
                )


def _has(folder: Path, problem: Problem) -> bool:
    return bool(
        pq.read_table(
            folder / "problems.parquet",
            columns=["problem_id"],
            filters=[("problem_id", "=", problem.problem_id)],
        ).num_rows
    )


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
