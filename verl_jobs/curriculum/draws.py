"""Problems selected in a training step, with their pass rates: `draws/step-000012.jsonl`.

The folder is the job's. Files are written if a curriculum selects. A step that is repeated after a
kill replaces its file. Without a curriculum, the samples give the same information except for the
expected pass rate.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from artifacts.atomic import write_atomic
from artifacts.integrity import reading
from verl_jobs import samples

FOLDER = "draws"


@dataclass(frozen=True)
class Draw:
    """One problem of a step: `passed` of `n` completions with a verdict.

    `expected` is the previously expected pass rate, None if there is none.
    """

    problem_id: str
    passed: int
    n: int
    expected: float | None = None

    @property
    def pass_rate(self) -> float:
        return self.passed / self.n


def write(folder: Path, step: int, draws: Sequence[Draw]) -> None:
    write_atomic(_path(folder, step), "".join(json.dumps(asdict(draw)) + "\n" for draw in draws))


def read(folder: Path, step: int) -> list[Draw]:
    """Return the step's draws, sorted by problem.

    Raises FileNotFoundError that names the existing steps, and CorruptArtifact.
    """
    path = _path(folder, step)
    if path.exists():
        with reading(path, samples.FIX):
            lines = path.read_text(encoding="utf-8").splitlines()
            return [Draw(**json.loads(line)) for line in lines]
    passed: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for sample in samples.read(folder, step):
        passed[sample.problem_id] += sample.verdict == "AC"
        counts[sample.problem_id] += 1
    return [
        Draw(problem_id, passed[problem_id], counts[problem_id]) for problem_id in sorted(counts)
    ]


def _path(folder: Path, step: int) -> Path:
    return folder / FOLDER / f"step-{step:06d}.jsonl"
