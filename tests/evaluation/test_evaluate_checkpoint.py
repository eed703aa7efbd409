"""`ratchet evaluate --benchmark --model`, with a real, tiny checkpoint.

Its completions are judged like a file of completions.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from cli.evaluate.completions import EvaluationOptions, ModelOptions, evaluate_model
from cli.reproduce import reproduce
from evaluation.scorecard import Scorecard
from resources.settings import Settings

TASKS = [
    {
        "id": name,
        "statement": name,
        "style": "call",
        "entry_point": "f",
        "tests": [{"args": [2], "expected": 4}],
    }
    for name in ("double", "square")
]


@pytest.mark.slow
def test_completions_of_a_checkpoint_are_generated_and_judged(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(task) + "\n" for task in TASKS))
    (tmp_path / "mine.yaml").write_text("{name: mine, data: mine.jsonl, max_new_tokens: 8}")
    options = EvaluationOptions(str(tmp_path / "mine.yaml"), None, tmp_path / "verdicts.jsonl")
    assert (
        evaluate_model(
            ModelOptions(str(checkpoint), None, 2, 1.0),
            options,
            tmp_path / "home",
            Console(quiet=True),
            Console(quiet=True),
        )
        == 0
    )
    rows = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert [(row["task_id"], row["sample"]) for row in rows] == [
        (task, sample) for task in ("double", "square") for sample in (0, 1)
    ]
    assert not any(row["base"] for row in rows)  # the checkpoint is not trained


@pytest.mark.slow
def test_reproduce_generates_missing_completions_again(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(task) + "\n" for task in TASKS))
    (tmp_path / "mine.yaml").write_text(
        "{name: mine, data: mine.jsonl, max_new_tokens: 8, extraction: given}"
    )
    options, quiet = (
        EvaluationOptions(str(tmp_path / "mine.yaml"), None, tmp_path / "verdicts.jsonl"),
        Console(quiet=True),
    )
    evaluate_model(
        ModelOptions(str(checkpoint), None, 2, 1.0), options, tmp_path / "home", quiet, quiet
    )
    path = tmp_path / "verdicts.scorecard.json"
    card = Scorecard.read(path)
    assert card.checkpoint == checkpoint.name
    assert card.checkpoint_hash
    assert card.sampling["temperature"] == 1.0
    assert card.prompts == {"double": "double", "square": "square"}
    bare = tuple(
        sample.model_copy(update={"completion": "", "program": ""}) for sample in card.samples
    )
    card.model_copy(update={"samples": bare}).write(path)
    for file in (tmp_path / "home" / "answers").glob("*.jsonl"):
        file.unlink()
    assert reproduce(str(path), tmp_path / "again.json", Settings.read(), quiet) == 0
    drawn = Scorecard.read(tmp_path / "again.json")
    assert [sample.completion for sample in drawn.samples] == [
        sample.completion for sample in card.samples
    ]
