"""`ratchet evaluate --benchmark --model`: a real, tiny checkpoint is asked, and judged as a file of answers is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from rich.console import Console

from pipelines.judged import Asked, evaluate_model

SOURCE = Path(__file__).parents[3] / "shared" / "data" / "humanevalplus" / "HumanEvalPlus.jsonl.gz"


@pytest.mark.slow
@pytest.mark.skipif(not SOURCE.exists(), reason=f"no {SOURCE}")
def test_a_checkpoint_is_asked_judged_and_scored(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    with gzip.open(SOURCE, "rt", encoding="utf-8") as lines:
        two = [next(lines), next(lines)]
    (tmp_path / "two.jsonl").write_text("".join(two))
    asked = Asked("humaneval+", tmp_path / "two.jsonl", tmp_path / "verdicts.jsonl")
    assert evaluate_model(str(checkpoint), None, 2, 1.0, asked, Console(quiet=True), Console(quiet=True)) == 0
    rows = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert [(row["task_id"], row["sample"]) for row in rows] == [(f"HumanEval/{task}", sample) for task in (0, 1) for sample in (0, 1)]
    assert not any(row["plus"] for row in rows)  # it has learned nothing of the kind
