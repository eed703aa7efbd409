"""The home of one decided pipeline run, with real records and placeholder weights.

Nothing is trained or judged, so that a test can make one in less than a second.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_data
from artifacts.integrity import seal
from artifacts.manifest import Manifest
from artifacts.store import KINDS, Artifact, Store
from evaluation.generation.completion_cache import CacheKey, CompletionCache
from evaluation.sampling import CompletionOutput, Sampling
from evaluation.scorecard import CARD
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.funnel import REMOVED, Stage
from problems.schema import Problem, write_parquet
from resources.home import Home
from resources.problem_intake import import_problems
from resources.registry.ledger import Kind, Ledger
from resources.registry.regressions import RegressionSet
from rewards.config import RewardConfig
from tests.evaluation.scorecards import sample, scorecard
from tests.open_runs import open_test_run
from tests.test_extensions import PROBLEM
from verl_jobs import samples
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob

RUN = "chain-0001"
DATASETS = ("augmented_problems", "synthetic_problems", "clean_problems")
WEIGHTS = "model.safetensors"


def write_home(folder: Path, model: Path | None = None) -> Path:
    """Write the home, whose ledger is empty. model: the checkpoints are copies of this folder."""
    home = Home(folder)
    home.make()
    problems = generate(FamilyConfig(demonstrations=4, train=4, validation=2))
    store, clean = home.store(), _write_datasets(home.store(), problems)
    base = _publish(store, "checkpoints", "base_model", _weights("base", model), {"data": clean})
    sft = _publish(
        store, "checkpoints", "sft_checkpoint", _weights("sft", model),
        {"clean_problems": clean, "base_model": base},
    )  # fmt: skip
    trained = _publish(store, "checkpoints", RUN, _weights("trained", model), {"start": sft})
    scores = {
        f"{name}--{benchmark}": _write_score(store, name, checkpoint, benchmark)
        for name, checkpoint in ((RUN, trained), (f"{RUN}-sft", sft))
        for benchmark in ("heldout", "validation")
    }
    _publish(store, "scores", RUN, _file("not_measured.json", "{}"), scores)
    _publish(store, "reports", "leaderboard", _file("leaderboard.json", "[]"), {"a": trained})
    _write_training(home)
    _write_other_records(home, problems)
    return folder


def _publish(
    store: Store,
    kind: str,
    name: str,
    fill: Callable[[Path], None],
    inputs: dict[str, Artifact],
    facts: dict[str, Any] | None = None,
) -> Artifact:
    with store.draft(kind, name) as folder:
        fill(folder)
        hashes = {each: artifact.content_hash for each, artifact in inputs.items()}
        manifest = Manifest(
            kind=kind,
            name=name,
            key=hash_data([kind, name]),
            content_hash="",
            inputs=hashes,
            facts=facts or {},
        )
        return store.publish(folder, manifest)


def _file(name: str, text: str) -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        (folder / name).write_text(text, encoding="utf-8")

    return fill


def _weights(name: str, model: Path | None) -> Callable[[Path], None]:
    def copy(folder: Path) -> None:
        assert model is not None
        shutil.copytree(model, folder, dirs_exist_ok=True)
        (folder / "name").write_text(name, encoding="utf-8")

    return copy if model else _file(WEIGHTS, name)


def _write_datasets(store: Store, problems: list[Problem]) -> Artifact:
    """Write the datasets; return the one with the clean problems."""
    inputs: dict[str, Artifact] = {}
    for number, name in enumerate(DATASETS):

        def fill(folder: Path, first: int = number) -> None:
            write_parquet(problems[first:], folder / "problems.parquet")
            for report in ("contamination", "duplicates", "suspects"):
                (folder / f"{report}.json").write_text("{}", encoding="utf-8")
            (folder / REMOVED).write_text("[]", encoding="utf-8")

        count = len(problems[number:])
        facts = Stage(name, count, count).facts
        inputs[name] = _publish(store, "datasets", name, fill, dict(inputs), facts)
    _publish(store, "datasets", "difficulty_rankings", _file("ranks.json", "[]"), inputs)
    return inputs["clean_problems"]


def _write_score(store: Store, name: str, checkpoint: Artifact, benchmark: str) -> Artifact:
    samples = [
        sample(f"t/{number}", completion="x = 1", program="x = 1", verdict=verdict)
        for number, verdict in enumerate(("AC", "WA", "CE"))
    ]
    card = scorecard(
        name,
        samples,
        benchmark=benchmark,
        benchmark_version=hash_data(benchmark),
        checkpoint_hash=checkpoint.content_hash,
    )
    with store.draft("scores", score := f"{name}--{benchmark}") as folder:
        card.write(folder / CARD)
        manifest = Manifest(
            kind="scores",
            name=score,
            key=hash_data(score),
            content_hash=card.content_hash,
            inputs={"checkpoint": checkpoint.content_hash},
        )
        return store.publish(folder, manifest)


def _write_training(home: Home) -> None:
    run = open_test_run(home.runs, RUN)
    run.change(state="done", decision="refuse")
    job = TrainingJob(
        folder=str(run.folder / "training" / "1"), run_id=RUN, start="start",
        train="train.parquet", validation="validation.parquet", inputs={},
        training=Training(steps=2, save_every=2), reward=RewardConfig(), reward_hash="c",
        isolation="auto", seed=1,
    )  # fmt: skip
    job.path.mkdir(parents=True)
    job.write()
    rows: list[dict[str, Any]] = [
        {"step": step, "data": {"critic/score/mean": -0.5}} for step in (1, 2)
    ]
    (job.path / "metrics-001.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    sample = samples.Sample("toy/a", "def solve(x): ...", -1.0, "WA", 0.0, {"correctness": -1.0})
    for step in (1, 2):
        samples.write(job.path, step, [sample])
    job.finish()
    with run.stage("checkpoint"):
        pass


def _write_other_records(home: Home, problems: list[Problem]) -> None:
    """Write a battery, a lost task, completions of an endpoint and a source of the user."""
    home.batteries.mkdir()
    (home.batteries / "5.json").write_text(seal('{\n "passed": true\n}'), encoding="utf-8")
    RegressionSet(home.regressions).remember(
        problems[:2], benchmark="heldout", solved_by="one", lost_by="two", run_id=RUN, number=1
    )
    with CompletionCache(home.path / "answers", {"model": "one"}, Sampling()) as cache:
        cache.add([(CacheKey("hash of a prompt", 0), CompletionOutput("x = 1", 5, False, 0.1))])
    home.problem_inbox.mkdir()
    own = home.problem_inbox / "own.jsonl"
    own.write_text(json.dumps(PROBLEM) + "\n", encoding="utf-8")
    import_problems(home, own)
    own.unlink()


def members(home: Path) -> list[str]:
    """Return the relative names of all files that the registry's verification covers."""
    folders = (*KINDS, "runs", "batteries", "answers", "problem_files")
    names = [
        path.relative_to(home).as_posix()
        for folder in folders
        for path in (home / folder).rglob("[!.]*")
        if path.is_file() and path.stat().st_size
    ]
    return sorted(names)


def fill_ledger(home: Home, *, promoted: bool = False) -> None:
    """Record an installed champion and a refused challenger, or a promoted one."""
    champion, challenger = (
        home.store().require("checkpoints", name) for name in ("sft_checkpoint", RUN)
    )
    kinds: dict[str, tuple[Kind, Artifact]] = {
        f"{RUN}/first": ("install", champion),
        RUN: ("promote" if promoted else "refuse", challenger),
    }
    for run_id, (kind, artifact) in kinds.items():
        Ledger(home.ledger).append(
            kind,
            checkpoint=artifact.manifest.name,
            checkpoint_hash=artifact.content_hash,
            path=str(artifact.path),
            decision={"reasons": ["a test"]},
            run_id=run_id,
            against=None if kind == "install" else champion.content_hash,
        )
