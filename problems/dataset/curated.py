"""Curate a dataset and write it to a folder.

In: candidates, gated problems and a config. Out: the problems that training may use, the removed
ones with their reasons, the evidence of duplicates and contamination, and the dataset card.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_file
from problems.cleaning.curation import Curation, curate, licences
from problems.dataset.card import write_dataset
from problems.dataset.evidence import CONTAMINATION, DUPLICATES, SUSPECTS, write_evidence
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
) -> dict[str, Any]:
    """Curate the candidates, fill the folder, and return the facts of its manifest.

    earlier_stages: the funnel's stages before this one, for the card. sandbox: see `curate`.
    """
    curated = curate(candidates, gated, config, sandbox)
    write_parquet(curated.problems, folder / "problems.parquet")
    write_parquet(gated, folder / GATED)
    (folder / "removed.json").write_text(
        json.dumps([asdict(row) for row in curated.removed], indent=1), encoding="utf-8"
    )
    write_evidence(curated, folder)
    write_dataset(curated, [*earlier_stages, replace(curated.stage, name=NAME)], folder)
    return {
        "came_in": len(candidates),
        "kept": len(curated.problems),
        "gated": len(gated),
        "licences": licences(candidates, config),
        "groups": len(curated.duplicates.groups),
        "capped": curated.duplicates.capped,
        "uncompared": curated.duplicates.uncompared,
        "reports": {
            name: hash_file(folder / name) for name in (CONTAMINATION, DUPLICATES, SUSPECTS)
        },
    }
