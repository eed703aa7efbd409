"""Build a home with a champion, as a pipeline run leaves it: real records, fake weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from artifacts.manifest import Manifest
from artifacts.store import Artifact
from evaluation.scorecard import Scorecard
from problems.embedded.heldout import heldout_tasks
from problems.embedded.settings import FamilyConfig
from problems.schema import write_parquet
from resources.home import Home
from resources.model_version import ModelVersion
from resources.run_context import RunContext
from resources.run_record import Kind
from resources.settings import Settings
from tests.evaluation.scorecards import card
from tests.open_runs import open_test_run


def scorecard_of(
    checkpoint: Artifact, solved: int, tasks: int, version: str, benchmark: str = "heldout"
) -> Scorecard:
    """Make the scorecard of a checkpoint that solves the first tasks."""
    return card(
        checkpoint.manifest.name,
        [i < solved for i in range(tasks)],
        benchmark=benchmark,
        benchmark_version=version,
        checkpoint_hash=checkpoint.content_hash,
    )


class HomeBuilder:
    """Adds checkpoints, scores and promotions to a home."""

    def __init__(self, path: Path) -> None:
        self.run_context = RunContext.of(Settings(Home(path), "small"))
        self.run_context.home.make()

    def checkpoint(self, name: str) -> Artifact:
        with self.run_context.store.draft("checkpoints", name) as folder:
            (folder / "model.safetensors").write_text(name, encoding="utf-8")
            return self.run_context.store.publish(
                folder, Manifest(kind="checkpoints", name=name, key=name, content_hash="")
            )

    def with_validation_problems(self) -> HomeBuilder:
        """Publish the problems of the home's benchmarks: a small family."""
        problems = [
            replace(problem, split="validation") for problem in heldout_tasks(FamilyConfig(), 0, 5)
        ]
        with self.run_context.store.draft("datasets", "clean_problems") as folder:
            write_parquet(problems, folder / "problems.parquet")
            (folder / "suspects.json").write_text("{}", encoding="utf-8")
            self.run_context.store.publish(
                folder, Manifest(kind="datasets", name="clean_problems", key="k", content_hash="")
            )
        return self

    def tiny_champion(self, texts: list[str], layers: int = 1, heads: int = 2) -> Artifact:
        """Make a tiny model with real weights, whose tokenizer knows these texts, the champion."""
        from verl_jobs.sft.tiny_model import TinyModel, make

        with self.run_context.store.draft("checkpoints", "tiny") as folder:
            make(TinyModel(hidden=32, layers=layers, heads=heads), texts, folder)
            checkpoint = self.run_context.store.publish(
                folder, Manifest(kind="checkpoints", name="tiny", key="tiny", content_hash="")
            )
        self.run_context.ledger.append(
            "install",
            checkpoint="tiny",
            checkpoint_hash=checkpoint.content_hash,
            path=str(checkpoint.path),
            decision={"reasons": []},
            run_id="tiny",
            against=None,
        )
        return checkpoint

    def scored(
        self, record: str, kind: Kind, cards: dict[str, Scorecard], champion: Artifact | None
    ) -> None:
        """Add the record of a finished run with its scorecards."""
        known = (
            ModelVersion(
                checkpoint=champion.manifest.name,
                content_hash=champion.content_hash,
                path=str(champion.path),
            )
            if champion
            else None
        )
        pipeline_run = open_test_run(self.run_context.home.runs, record, kind=kind, champion=known)
        with self.run_context.store.draft("scores", record) as folder:
            (folder / "not_measured.json").write_text("{}", encoding="utf-8")
            for who, scorecard in cards.items():
                scorecard.write(folder / f"{who}--{scorecard.benchmark}.json")
            self.run_context.store.publish(
                folder, Manifest(kind="scores", name=record, key=record, content_hash="")
            )
        pipeline_run.change(state="done")

    def promoted(self, name: str, solved: int = 60, tasks: int = 100) -> Artifact:
        """Add a champion with the score of its decision."""
        checkpoint, before = self.checkpoint(name), self.run_context.ledger.champion()
        scorecard = scorecard_of(checkpoint, solved, tasks, f"draw of {name}")
        self.scored(name, "pipeline", {"challenger" if before else "champion": scorecard}, None)
        kind: Literal["promote", "install"] = "promote" if before else "install"
        self.run_context.ledger.append(
            kind,
            checkpoint=name,
            checkpoint_hash=checkpoint.content_hash,
            path=str(checkpoint.path),
            decision={"reasons": ["test"]},
            run_id=name,
            against=before.checkpoint_hash if before else None,
        )
        return checkpoint
