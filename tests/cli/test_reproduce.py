"""`ratchet reproduce` repeats a stored score with a small real model and the real sandbox."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from artifacts.integrity import CorruptArtifact, hashes_of, seal
from artifacts.manifest import Manifest
from artifacts.store import Artifact
from cli.lookup.scored_benchmark import NotReproducible
from cli.reproduce import differences, reproduce
from evaluation.benchmarks import heldout
from evaluation.evaluate import evaluate
from evaluation.sampling import Sampling
from evaluation.scorecard import Scorecard
from problems.embedded.heldout import heldout_tasks
from resources.settings import Settings
from sandbox.sandbox import Sandbox
from tests.open_runs import open_test_run
from tests.pipelines.home_builder import HomeBuilder

TASKS = 6
SAMPLING = Sampling(max_new_tokens=8, temperature=1.0, seed=5)


@pytest.fixture
def score(home_builder: HomeBuilder, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """Return the score tiny--heldout, on the held-out draw of the home's second record."""
    from verl_jobs.sft.tiny_model import TinyModel, make

    monkeypatch.setenv("RATCHET_HOME", str(home_builder.run_context.home.path))
    monkeypatch.setenv("RATCHET_PROFILE", "small")
    family = home_builder.run_context.profile.family
    problems = heldout_tasks(family, TASKS, TASKS)
    for name in ("one", "two"):
        open_test_run(home_builder.run_context.home.runs, name, kind="evaluation")
    store = home_builder.run_context.store
    with store.draft("checkpoints", "tiny") as folder:
        make(
            TinyModel(hidden=32, layers=2), [problem.statement for problem in problems] * 4, folder
        )
        model = store.publish(
            folder, Manifest(kind="checkpoints", name="tiny", key="tiny", content_hash="")
        )
    with Sandbox() as sandbox:
        card = evaluate(
            model.path, "tiny", model.content_hash, heldout(problems, SAMPLING), sandbox
        )
    with store.draft("scores", "tiny--heldout") as folder:
        card.write(folder / "scorecard.json")
        inputs = {"checkpoint": model.content_hash, "benchmark": card.benchmark_version}
        config: dict[str, Any] = {"sampling": card.sampling, "harness": card.harness_version}
        manifest = Manifest(
            kind="scores",
            name="tiny--heldout",
            key="1",
            content_hash=card.content_hash,
            inputs=inputs,
            config=config,
        )
        return store.publish(folder, manifest)


def reproduced(name: str, out: Path | None = None) -> tuple[int, str]:
    text = StringIO()
    return reproduce(name, out, Settings.read(), Console(file=text, width=200)), text.getvalue()


@pytest.mark.slow
@pytest.mark.timeout(600)  # transformers is loaded, which takes long on a busy machine
def test_a_score_is_reproduced_and_a_forged_verdict_named(
    score: Artifact, home_builder: HomeBuilder, tmp_path: Path
) -> None:
    code, text = reproduced("tiny--heldout", tmp_path / "again.json")
    assert code == 0
    assert re.search(rf"tiny--heldout: .*\b{TASKS}\b.*\b0 completions differ", text)
    assert "recorded" not in text.splitlines()[-1]
    recorded = Scorecard.stored(score)
    assert Scorecard.read(tmp_path / "again.json").content_hash == recorded.content_hash
    forged = recorded.model_copy(
        update={
            "samples": (
                recorded.samples[0].model_copy(update={"verdict": "AC"}),
                *recorded.samples[1:],
            )
        }
    )
    forge(home_builder, score, forged)
    code, text = reproduced(forged.content_hash[:12])
    task, verdict = recorded.samples[0].task_id, recorded.samples[0].verdict
    assert code == 1
    assert f"- {task}#0: recorded AC, now {verdict}; same completion" in text
    (
        home_builder.run_context.store.require("checkpoints", "tiny").path / "model.safetensors"
    ).unlink()
    with pytest.raises(CorruptArtifact, match=r"model\.safetensors"):
        reproduced("tiny--heldout")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_missing_tasks_and_unknown_scores_are_named(
    score: Artifact, home_builder: HomeBuilder
) -> None:
    with pytest.raises(NotReproducible, match=r"'other'.*tiny--heldout"):
        reproduced("other")
    other = Scorecard.stored(score).model_copy(update={"benchmark_version": "f" * 64})
    forge(home_builder, score, other)
    with pytest.raises(NotReproducible, match=r"heldout.*ffffffffffff"):
        reproduced("tiny--heldout")


def forge(home_builder: HomeBuilder, score: Artifact, card: Scorecard) -> None:
    """Replace a score's card and its manifest, so that only judging again can notice."""
    card.write(score.path / "scorecard.json")
    manifest = score.manifest.model_copy(
        update={"content_hash": card.content_hash, "files": hashes_of(score.path)}
    )
    (score.path / "manifest.json").write_text(
        seal(manifest.model_dump_json(indent=1)), encoding="utf-8"
    )
    home_builder.run_context.store.point(manifest)


def test_a_completion_in_one_card_only_is_a_difference() -> None:
    samples = [
        {"task_id": f"t/{i}", "completion": "", "program": "", "verdict": "AC"} for i in range(2)
    ]
    plain = {
        "benchmark": "b",
        "benchmark_version": "v",
        "harness_version": "1",
        "checkpoint": "c",
        "checkpoint_hash": "h",
        "sampling": {},
    }
    one, two = (
        Scorecard.model_validate({**plain, "isolation": "none", "samples": samples[:count]})
        for count in (1, 2)
    )
    assert differences(one, two) == ["t/1#0: only in the new score"]
    assert differences(two, one) == ["t/1#0: only in the recorded score"]


def test_failures_of_different_test_sets_are_a_difference() -> None:
    plain = {
        "benchmark": "b",
        "benchmark_version": "v",
        "harness_version": "1",
        "checkpoint": "c",
        "checkpoint_hash": "h",
        "sampling": {},
    }
    cards = [
        Scorecard.model_validate(
            {
                **plain,
                "isolation": "none",
                "samples": [
                    {
                        "task_id": "t/1",
                        "completion": "x",
                        "program": "x",
                        "verdict": "WA",
                        "sets": s,
                    }
                ],
            }
        )
        for s in ({"base": True, "plus": False}, {"base": False, "plus": False})
    ]
    assert differences(*cards) == ["t/1#0: recorded WA (base pass), now WA; same completion"]
