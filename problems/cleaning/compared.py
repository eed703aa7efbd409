"""Compare problems with gated tasks, in parts of a few seconds.

In: problems, gated tasks, an open sandbox. Out: the overlaps of each problem. A journal keeps them,
so that a killed pass resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from time import monotonic

from artifacts.code_hash import hash_modules
from artifacts.hashing import hash_data
from artifacts.json_lines import JsonLines
from problems.cleaning.contamination import Overlap
from problems.cleaning.semantic import BothIndexes
from problems.schema import Problem, set_hash
from sandbox.sandbox import Sandbox

PART_S, FIRST_PART, MAX_PART = 5.0, 32, 4096  # seconds and problems of a part


def compared(
    problems: Sequence[Problem],
    gated: Sequence[Problem],
    sandbox: Sandbox,
    model: str = "",
    journal: Path | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    every: bool = False,
) -> list[list[Overlap]]:
    """Return the overlaps of each problem, in their order; see `BothIndexes.overlaps`.

    model: see `MeaningIndex`. journal: a file that keeps the overlaps, written after each part, so
    that an unchanged problem is not compared again with the same tasks. Calls `on_progress(done,
    total)` at first and after each part. Raises NoOutput if the sandbox fails.
    """
    code = hash_modules((__name__,), ("problems", "sandbox"))
    rules = hash_data([code, set_hash(gated), model, every])[:16]
    keys = [f"{rules} {problem.content_hash}" for problem in problems]
    known, file = dict[str, list[Overlap]](), JsonLines(journal) if journal else None
    if file:
        file.open(
            lambda row: known.update({row["key"]: [Overlap(**one) for one in row["overlaps"]]}),
            "remove the line: its problem is compared again",
        )
    try:
        pending = {key: one for key, one in zip(keys, problems, strict=True) if key not in known}
        on_progress(len(keys) - len(pending), len(keys))
        indexes = BothIndexes(gated, model) if pending else None
        rest, size = iter(pending.items()), FIRST_PART
        while indexes and (part := dict(islice(rest, size))):
            started = monotonic()
            found: dict[str, list[Overlap]] = {one.problem_id: [] for one in part.values()}
            for overlap in indexes.overlaps([*part.values()], sandbox, every=every):
                found[overlap.problem_id].append(overlap)
            fresh = {key: found[one.problem_id] for key, one in part.items()}
            if file:
                file.append(
                    {"key": key, "overlaps": [*map(asdict, one)]} for key, one in fresh.items()
                )
            known |= fresh
            size = int(len(part) * PART_S / (monotonic() - started))
            size = max(FIRST_PART, min(MAX_PART, size))  # a part has costs of its own
            on_progress(sum(key in known for key in keys), len(keys))
    finally:
        if file:
            file.close()
    return [known[key] for key in keys]
