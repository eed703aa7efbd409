"""The warm-up: supervised training on demonstrations.

A model made from scratch learns from the embedded family, whose simulated author makes mistakes, so
that reinforcement learning can improve on them. A named `base` learns from the verified problems of
the splits that `warm_up.splits` names; if there is none, it stays unchanged. The warm-up trains all
weights, some (`warm_up.frozen`), or adapters (`warm_up.lora`). On a CPU, and for a small model on
one GPU, it runs in this process and resumes from its last state, at most half a minute old. Else
verl's own SFT trainer runs it, on the Ray that trains, with the layout of the training.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.hashing import hash_data
from artifacts.links import link_files
from artifacts.store import Artifact
from assets.partitions import TRAINING
from assets.pictures import loss_table
from assets.ray_job import other_job
from assets.stages import STAGES, asset_of
from problems.demonstrations import chats, demonstrations
from resources.run_context import RunContext, StageContext, StageOutput, result
from verl_jobs.agents.corrections import corrections, tool_uses
from verl_jobs.agents.executor import Executor
from verl_jobs.agents.tool import PythonTool
from verl_jobs.planner.shapes import shape_of
from verl_jobs.sft.warm_up import Prompt

Chats = list[tuple[Prompt, str]]
# Parameters up to which one GPU trains in this process: in fp32 with gradients and AdamW, 3.2 GB.
# The start of verl alone takes longer than the whole warm-up of such a model.
SMALL = 200_000_000


@dg.asset(
    **asset_of("sft_checkpoint"),
    kinds={"pytorch", "huggingface"},
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
        config, agents = stage.profile.warm_up, stage.profile.training.agents
        correcting = agents.turns > 1 or agents.trains == "reviewer"
        # A pretrained model may know calls of another form.
        calls = 0 if stage.profile.base else agents.tool_calls
        inputs = {"clean_problems": clean.content_hash, "base_model": base.content_hash}
        artifact_config = config.model_dump(mode="json") | (
            ({"corrections": True} if correcting else {})
            | ({"tool_calls": calls, "tool_output": agents.tool_output} if calls else {})
        )

        def make(folder: Path) -> StageOutput:
            problems = demonstrations(clean.path, config.splits)
            if not problems and stage.profile.base:
                return _as_it_is(base, folder)
            rows: Chats = [*chats(problems, stage.profile.base)]
            if correcting or calls:  # also train on what else conversations contain
                with stage.run_context.new_sandbox() as sandbox:
                    rows += corrections(problems, Executor(sandbox)) if correcting else []
                    if calls:
                        rows += tool_uses(problems, PythonTool(sandbox, calls, agents.tool_output))
            learn = _in_this_process if _fits_this_process(stage, base) else _on_ray
            losses = learn(stage, base, rows, inputs | {"config": artifact_config}, folder)
            (folder / "losses.json").write_text(
                json.dumps([round(loss, 6) for loss in losses]), encoding="utf-8"
            )
            return StageOutput(
                {"demonstrations": len(rows), "first_loss": losses[0], "last_loss": losses[-1]}
            )

        artifact = stage.artifact(
            STAGES["sft_checkpoint"],
            make,
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


def _fits_this_process(stage: StageContext, base: Artifact) -> bool:
    training = stage.profile.training
    if training.engine == "hf":
        return True
    return (
        training.ranks == 1
        and not stage.profile.ray.address
        and shape_of(str(base.path)).parameters <= SMALL
    )


def _in_this_process(
    stage: StageContext, base: Artifact, rows: Chats, inputs: dict[str, Any], folder: Path
) -> list[float]:
    """Write the trained model to the folder; return the loss of each step."""
    from verl_jobs.sft.warm_up import warm_up

    config, progress = stage.profile.warm_up, stage.report.progress
    return warm_up(
        base.path,
        rows,
        config,
        folder,
        lambda step, loss: progress.at(step, config.steps, f"loss {loss:.3f}"),
        stage.pipeline_run.folder / "warm_up" / f"{hash_data(inputs)[:12]}.pt",
    )


def _on_ray(
    stage: StageContext, base: Artifact, rows: Chats, inputs: dict[str, Any], folder: Path
) -> list[float]:
    """Like _in_this_process, with verl's SFT trainer in a Ray job."""
    from resources.ray.job import train
    from verl_jobs.sft import entry

    config, run_context, progress = (
        stage.profile.warm_up,
        stage.run_context,
        stage.report.progress,
    )
    job = other_job(stage, "warm_up", inputs, str(base.path), config.seed)
    entry.write_inputs(job, config, rows)

    def on_poll() -> None:
        seen = entry.losses(job)
        note = f"loss {seen[-1]:.3f}" if seen else "starting Ray and verl"
        progress.at(len(seen), config.steps, note)

    ray = run_context.ray.of(job, run_context.home, stage.profile)
    train(job, ray, on_poll=on_poll, entry=entry.__name__, held=run_context.home.lease)
    shutil.copytree(job.path / entry.WEIGHTS, folder, dirs_exist_ok=True)
    shutil.rmtree(job.path / "saves")
    return entry.losses(job)


def _as_it_is(base: Artifact, folder: Path) -> StageOutput:
    """Write the base model's files, as links where the file system has them."""
    link_files(base.path, folder)
    return StageOutput({"demonstrations": 0})
