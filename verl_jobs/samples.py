"""Completions of each training step, with verdicts and reward components.

They are in `samples/step-000012.jsonl` in the job's folder. A step that is repeated after a kill
replaces its file. Does not need verl.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from artifacts.atomic import write_atomic
from artifacts.integrity import RESTORE, reading

FOLDER = "samples"
FIX = f"{RESTORE}; the other steps are intact"
CUT = "watch/answers_cut"  # step metric: share of completions that were truncated
BY_LENGTH = "length"  # stop reason of an engine for a truncated completion
WEIGHTS = "weights"  # field of a rollout: digests of the weights that sampled it


class EngineWeights(NamedTuple):
    """The weights of an engine. digest: that of `artifacts.tensors`; empty if unknown."""

    step: int = 0  # training step after which they were sent to the engine
    digest: str = ""


class SampledTokens(NamedTuple):
    """A completion as an engine returns it."""

    tokens: list[int]
    log_probs: list[float]
    reason: str  # why it stopped
    weights: EngineWeights = EngineWeights()


@dataclass(frozen=True)
class Sample:
    """One completion. `trace`: the value of each reward component.

    The components sum to `reward`, except for DAPO's length penalty.
    """

    problem_id: str
    answer: str
    reward: float
    verdict: str
    tests_passed: float  # share
    trace: dict[str, float]
    cut: bool = False  # truncated by the length limit
    weights: str = ""  # digest of the weights that sampled it; "step 4" if the engine has none


def write(folder: Path, step: int, samples: Iterable[Sample]) -> None:
    write_atomic(
        _path(folder, step), "".join(json.dumps(asdict(sample)) + "\n" for sample in samples)
    )


def read(folder: Path, step: int) -> list[Sample]:
    """Return a step's samples in batch order.

    Raises FileNotFoundError that names the existing steps, and CorruptArtifact.
    """
    path = _path(folder, step)
    if not path.exists():
        existing = steps(folder)
        raise FileNotFoundError(
            f"{folder}: no samples of step {step}; existing steps: "
            f"{f'{existing[0]} to {existing[-1]}' if existing else 'none yet'}"
        )
    names = [field.name for field in fields(Sample)]
    with reading(path, FIX):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if not rows:
            raise ValueError("a step has samples")
        return [Sample(**{name: row[name] for name in names if name in row}) for row in rows]


def steps(folder: Path) -> list[int]:
    """Return the steps with samples, ascending."""
    matches = (
        re.fullmatch(r"step-(\d+)", path.stem) for path in (folder / FOLDER).glob("step-*.jsonl")
    )
    return sorted(int(match.group(1)) for match in matches if match)


def weight_fields(used: Sequence[EngineWeights]) -> dict[str, Any]:
    """Return the fields of a rollout that name the weights of its messages, in order."""
    steps = [each.step for each in used]
    return {
        "global_steps": steps[-1],
        "min_global_steps": min(steps),
        "max_global_steps": max(steps),
        WEIGHTS: " ".join(dict.fromkeys(each.digest for each in used)),
    }


def weights_of(fields: Mapping[str, Any]) -> str:
    """Return the weights that a rollout's fields name; see `Sample.weights`."""
    first, last = fields.get("min_global_steps"), fields.get("max_global_steps")
    steps = f"step {first}" if first == last else f"steps {first} to {last}"
    return str(fields.get(WEIGHTS) or (steps if first is not None else ""))


def _path(folder: Path, step: int) -> Path:
    return folder / FOLDER / f"step-{step:06d}.jsonl"
