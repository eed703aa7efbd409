"""A challenger is promoted on a benchmark of the user's own, by pass@5 of ten completions."""

from __future__ import annotations

import io
import json
from pathlib import Path

import dagster as dg
import pytest
from rich.console import Console

from artifacts.manifest import Manifest
from artifacts.store import Artifact
from evaluation.promotion.required_sample_size import required_for_promotion
from evaluation.scorecard import Scorecard
from pipelines.definitions import defs
from pipelines.watch.summary import show
from resources.run_context import RunContext
from resources.settings import Settings
from tests.pipelines.home_builder import HomeBuilder
from tests.pipelines.test_stale_scores import cleaned

TASKS, SOLUTION = 16, "def solve(x):\n    return x + 1"


def statement(number: int) -> str:
    return f"Menu {number}: return x plus one."


@pytest.fixture
def kitchen(tmp_path: Path) -> Path:
    """Write a benchmark as a YAML file; each two of its tasks are one cluster."""
    rows = [
        {
            "problem_id": str(number),
            "statement": statement(number),
            "entry_point": "solve",
            "style": "call",
            "tests": [{"args": [number], "expected": number + 1}],
            "solutions": [SOLUTION],
            "cluster": f"menu {number // 2}",
        }
        for number in range(TASKS)
    ]
    (tmp_path / "kitchen.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    file = tmp_path / "kitchen.yaml"
    file.write_text("name: kitchen\ndata: kitchen.jsonl\nmax_new_tokens: 24\n", encoding="utf-8")
    return file


def publish(home_builder: HomeBuilder, name: str, start: Path | None, steps: int = 1) -> Artifact:
    """Store a tiny model: made from scratch, or warmed up on the tasks."""
    from verl_jobs.sft.tiny_model import TinyModel, make
    from verl_jobs.sft.warm_up import WarmUp, warm_up

    chats = [
        ([{"role": "user", "content": statement(n)}], f"```python\n{SOLUTION}\n```")
        for n in range(TASKS)
    ]
    store = home_builder.run_context.store
    with store.draft("checkpoints", name) as folder:
        if start is None:
            texts = [f"{prompt[0]['content']}\n{text}" for prompt, text in chats]
            make(TinyModel(hidden=48, layers=1, heads=2), texts * 8, folder)
        else:
            warm_up(start, chats, WarmUp(steps=steps), folder)
        return store.publish(
            folder, Manifest(kind="checkpoints", name=name, key=name, content_hash="")
        )


@pytest.fixture
def champion(home_builder: HomeBuilder) -> Artifact:
    cleaned(home_builder, 4, "one")
    checkpoint = publish(home_builder, "tiny", None)
    home_builder.run_context.ledger.append(
        "install",
        checkpoint="tiny",
        checkpoint_hash=checkpoint.content_hash,
        path=str(checkpoint.path),
        decision={"reasons": ["test"]},
        run_id="tiny",
        against=None,
    )
    return checkpoint


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_custom_benchmark_gates_by_pass_at_5_of_ten_completions(
    champion: Artifact,
    home_builder: HomeBuilder,
    instance: dg.DagsterInstance,
    kitchen: Path,
    tmp_path: Path,
) -> None:
    challenger = publish(home_builder, "better", champion.path, steps=110)
    run_context = RunContext.of(
        Settings(
            home_builder.run_context.home,
            "small",
            (
                f"evaluation.benchmarks=[{{name: {kitchen}, n: 10, temperature: 0.5}}]",
                "evaluation.heldout=4",
                "policy.benchmark=kitchen",
                "policy.k=5",
                "policy.harm_only=[heldout]",  # four tasks rule out no fall
            ),
        )
    )
    instance.add_dynamic_partitions("checkpoints", ["tiny", "better"])
    for job in ("evaluate_checkpoint", "promote"):
        ended = defs.resolve_job_def(job).execute_in_process(
            instance=instance,
            partition_key="better",
            tags={"ratchet/kind": "evaluation", "ratchet/why": "test"},
            resources=run_context.resources | {"io_manager": dg.mem_io_manager},
        )
        assert ended.success
    entry = run_context.ledger.history()[-1]
    comparison = entry.decision["comparison"]
    score = run_context.store.require("scores", "better--kitchen")
    card = Scorecard.stored(score)
    assert {sample.cluster for sample in card.samples} == {f"menu {n}" for n in range(TASKS // 2)}
    assert entry.kind == "promote", entry.decision["reasons"]
    assert entry.checkpoint_hash == challenger.content_hash
    assert {
        key: comparison[key] for key in ("benchmark", "k", "completions", "test", "clusters")
    } == {
        "benchmark": "kitchen",
        "k": 5,
        "completions": 10,
        "test": "cluster_sign_flips",
        "clusters": TASKS // 2,
    }
    assert required_for_promotion(entry.decision) == []
    (tmp_path / "summary.json").write_text(
        json.dumps({"decision": entry.decision}), encoding="utf-8"
    )
    screen = Console(file=io.StringIO(), width=200)
    record = run_context.pipeline_run({"dagster/partition": "better"}).record
    show(tmp_path, record, screen)
    assert isinstance(screen.file, io.StringIO)
    text = screen.file.getvalue()
    assert "pass@5" in text
    assert f"{TASKS} tasks of kitchen" in text
    assert "McNemar" not in text
    assert f"None of {TASKS}" not in text
