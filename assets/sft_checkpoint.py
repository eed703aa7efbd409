"""The warm-up: supervised training on demonstrations. Their simulated author makes mistakes, so
that reinforcement learning can improve on them.

It trains all weights, some (`warm_up.frozen`), or adapters (`warm_up.lora`). After a kill it
resumes from its last state, at most half a minute old.
"""

import json
from pathlib import Path

import dagster as dg

from artifacts.hashing import hash_data
from assets.base_model import base_model, demonstrations
from assets.clean_problems import clean_problems
from assets.partitions import MODELS, OWNERS
from assets.pictures import loss_table
from problems.prompt import prompt_text
from problems.sources.compositional import demonstration
from resources.run_context import RunContext, StageOutput, result
from verl_jobs.agents.corrections import corrections
from verl_jobs.agents.executor import Executor
from verl_jobs.sft.warm_up import Prompt


@dg.asset(
    group_name=MODELS,
    kinds={"pytorch", "huggingface"},
    owners=OWNERS[MODELS],
    deps=[base_model, clean_problems],
)
def sft_checkpoint(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """The base model after supervised training on the demonstrations. It becomes the first
    champion.
    """
    with run_context.stage(context) as stage:
        clean, base = (
            stage.store.require("datasets", "clean_problems"),
            stage.store.require("checkpoints", "base_model"),
        )
        config, correcting = stage.profile.warm_up, stage.profile.training.agents.on
        inputs = {"clean_problems": clean.content_hash, "base_model": base.content_hash}
        artifact_config = config.model_dump(mode="json") | ({"mends": True} if correcting else {})

        def make(folder: Path) -> StageOutput:
            from verl_jobs.sft.warm_up import warm_up

            chats: list[tuple[Prompt, str]] = [
                (prompt_text(problem), demonstration(problem))
                for problem in demonstrations(clean.path)
            ]
            if correcting:  # also train on sandbox reports, which conversations contain
                with stage.run_context.sandbox() as sandbox:
                    chats += corrections(demonstrations(clean.path), Executor(sandbox))
            progress = stage.report.progress
            state = (
                stage.pipeline_run.folder
                / "warm_up"
                / f"{hash_data(inputs | {'config': artifact_config})[:12]}.pt"
            )
            losses = warm_up(
                base.path,
                chats,
                config,
                folder,
                lambda step, loss: progress.at(step, config.steps, f"loss {loss:.3f}"),
                state,
            )
            (folder / "losses.json").write_text(
                json.dumps([round(loss, 6) for loss in losses]), encoding="utf-8"
            )
            return StageOutput(
                {"demonstrations": len(chats), "first_loss": losses[0], "last_loss": losses[-1]}
            )

        artifact = stage.artifact(
            "checkpoints",
            "sft_checkpoint",
            make,
            version=1,
            inputs=inputs,
            config=artifact_config,
            seed=config.seed,
        )
        facts = artifact.manifest.facts
        stage.report.say(f"loss {facts['first_loss']:.2f} to {facts['last_loss']:.2f}")
    losses = json.loads((artifact.path / "losses.json").read_text(encoding="utf-8"))
    metadata = {
        "demonstrations": facts["demonstrations"],
        "last_loss": facts["last_loss"],
        "loss": dg.MetadataValue.md(loss_table(losses)),
    }
    return result(artifact, metadata)
