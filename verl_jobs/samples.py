"""What the policy wrote at each training step, with verdicts and what each part of the reward gave: `samples/step-000012.jsonl` in the job's folder.

A step that is done again after a kill replaces its file. Readable without verl.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from artifacts.store import write_atomic

FOLDER = "samples"
CUT = (
    "watch/answers_cut"  # among a step's metrics: the share of its answers that their length ended
)
BY_LENGTH = "length"  # why an answer ended, as an engine says it


@dataclass(frozen=True)
class Sample:
    """One answer. `trace`: what each component of the reward gave; they sum to `reward`, less DAPO's penalty for length."""

    problem_id: str
    answer: str
    reward: float
    verdict: str
    tests_passed: float  # share
    trace: dict[str, float]
    cut: bool = False  # ended by its length and not by itself


def write(folder: Path, step: int, samples: Iterable[Sample]) -> None:
    write_atomic(
        _path(folder, step), "".join(json.dumps(asdict(sample)) + "\n" for sample in samples)
    )


def read(folder: Path, step: int) -> list[Sample]:
    """In the order of the batch. Raises FileNotFoundError that names the steps there are."""
    path = _path(folder, step)
    if not path.exists():
        there = steps(folder)
        raise FileNotFoundError(
            f"{folder}: no samples of step {step}: there are {f'{there[0]} to {there[-1]}' if there else 'none yet'}"
        )
    names = [field.name for field in fields(Sample)]
    return [
        Sample(**{name: row[name] for name in names if name in row})
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
    ]


def steps(folder: Path) -> list[int]:
    """Steps with samples, ascending."""
    found = (
        re.fullmatch(r"step-(\d+)", path.stem) for path in (folder / FOLDER).glob("step-*.jsonl")
    )
    return sorted(int(match.group(1)) for match in found if match)


def _path(folder: Path, step: int) -> Path:
    return folder / FOLDER / f"step-{step:06d}.jsonl"
