"""The warm-up: supervised training on demonstrations.

A model made from scratch learns from the embedded family, whose simulated author makes mistakes, so
that reinforcement learning can improve on them. A named `base` learns from the verified problems of
the split `demonstrations`; if no source has any, it stays unchanged. The warm-up trains all
weights, some (`warm_up.frozen`), or adapters (`warm_up.lora`). After a kill it resumes from its
last state, at most half a minute old.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.hashing import hash_data
from artifacts.manifest import NAME as MANIFEST
from artifacts.store import Artifact
from assets.base_model import base_model
from assets.clean_problems import clean_problems
from assets.partitions import MODELS, OWNERS, TRAINING
from assets.pictures import loss_table
from problems.demonstrations import chats, demonstrations
from resources.run_context import RunContext, StageOutput, result
from verl_jobs.agents.corrections import corrections
from verl_jobs.agents.executor import Executor
from verl_jobs.sft.warm_up import Prompt

VERSION = 1  # of what is made from the same inputs


@dg.asset(
    code_version=str(VERSION),
    group_name=MODELS,
    kinds={"pytorch", "huggingface"},
    owners=OWNERS[MODELS],
    deps=[base_model, clean_problems],
    pool=TRAINING,
)
def sft_checkpoint(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """The base model after supervised training on demonstrations. Without demonstrations it is the
    unchanged base model. It becomes the first champion.
    """
    with run_context.stage(context) as stage:
        clean = stage.store.require("datasets", "clean_problems")
        base = stage.store.require("checkpoints", "base_model")
        config, correcting = stage.profile.warm_up, stage.profile.training.agents.on
        inputs = {"clean_problems": clean.content_hash, "base_model": base.content_hash}
        artifact_config = config.model_dump(mode="json") | ({"mends": True} if correcting else {})

        def make(folder: Path) -> StageOutput:
            from verl_jobs.sft.warm_up import warm_up

            problems = demonstrations(clean.path)
            if not problems and stage.profile.base:
                return _as_it_is(base, folder)
            rows: list[tuple[Prompt, str]] = [*chats(problems, stage.profile.base)]
            if correcting:  # also train on sandbox reports, which conversations contain
                with stage.run_context.new_sandbox() as sandbox:
                    rows += corrections(problems, Executor(sandbox))
            progress = stage.report.progress
            state = (
                stage.pipeline_run.folder
                / "warm_up"
                / f"{hash_data(inputs | {'config': artifact_config})[:12]}.pt"
            )
            losses = warm_up(
                base.path,
                rows,
                config,
                folder,
                lambda step, loss: progress.at(step, config.steps, f"loss {loss:.3f}"),
                state,
            )
            (folder / "losses.json").write_text(
                json.dumps([round(loss, 6) for loss in losses]), encoding="utf-8"
            )
            return StageOutput(
                {"demonstrations": len(rows), "first_loss": losses[0], "last_loss": losses[-1]}
            )

        artifact = stage.artifact(
            "checkpoints",
            "sft_checkpoint",
            make,
            version=VERSION,
            inputs=inputs,
            config=artifact_config,
            seed=config.seed,
        )
        facts = artifact.manifest.facts
        trained = facts["demonstrations"] > 0
        stage.report.say(
            f"loss {facts['first_loss']:.2f} to {facts['last_loss']:.2f}"
            if trained
            else "no demonstrations: training starts from the base model"
        )
    metadata: dict[str, Any] = {"demonstrations": facts["demonstrations"]}
    if trained:
        losses = json.loads((artifact.path / "losses.json").read_text(encoding="utf-8"))
        metadata |= {
            "last_loss": facts["last_loss"],
            "loss": dg.MetadataValue.md(loss_table(losses)),
        }
    return result(artifact, metadata)


def _as_it_is(base: Artifact, folder: Path) -> StageOutput:
    """Write the base model's files, as links where the file system has them."""

    def link(source: str, target: str) -> None:
        try:
            Path(target).hardlink_to(source)
        except OSError:
            shutil.copy2(source, target)

    shutil.copytree(
        base.path,
        folder,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns(MANIFEST),
        copy_function=link,
    )
    return StageOutput({"demonstrations": 0})
