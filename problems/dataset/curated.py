"""Curate a dataset and write it to a folder.

In: candidates, gated problems and a config. Out: the problems that training may use, the removed
ones with their reasons, the evidence of duplicates and contamination, and the dataset card.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_file
from problems.cleaning.curation import curate, licence_counts, licences
from problems.cleaning.settings import Curation
from problems.dataset.dataset_files import write_dataset
from problems.dataset.evidence import CONTAMINATION, DUPLICATES, SUSPECTS
from problems.funnel import Stage
from problems.schema import Problem, write_parquet
from sandbox.sandbox import Sandbox

NAME = "clean"  # the stage's name in the funnel
GATED = "gated.parquet"


def write_curated(
    candidates: list[Problem],
    gated: list[Problem],
    config: Curation,
    earlier_stages: Sequence[Stage],
    folder: Path,
    sandbox: Sandbox | None = None,
    *,
    journal: Path | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Curate the candidates, fill the folder, and return the facts of its manifest.

    earlier_stages: the funnel's stages before this one, for the card. sandbox, journal,
    on_progress: see `curate`.
    """
    curated = curate(candidates, gated, config, sandbox, journal, on_progress)
    write_parquet(gated, folder / GATED)
    write_dataset(curated, [*earlier_stages, replace(curated.stage, name=NAME)], folder)
    return facts(
        folder,
        curated.stage,
        gated=len(gated),
        licences=licences(licence_counts(candidates), config),
        groups=len(curated.duplicates.groups),
        capped=curated.duplicates.capped,
        uncompared=curated.duplicates.uncompared,
    )


def facts(folder: Path, stage: Stage, **counts: Any) -> dict[str, Any]:
    """Return the facts of a dataset's manifest: the counts, and the hashes of the reports."""
    counts = {"came_in": stage.came_in, "kept": stage.went_out} | counts | stage.facts
    reports = {name: hash_file(folder / name) for name in (CONTAMINATION, DUPLICATES, SUSPECTS)}
    return counts | {"reports": reports}
