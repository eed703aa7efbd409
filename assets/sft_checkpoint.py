"""The warm-up: supervised training on demonstrations that a fallible author wrote, so that reinforcement learning has something to weigh."""

import json
from pathlib import Path

import dagster as dg

from assets.base_model import base_model, demonstrations
from assets.clean_problems import clean_problems
from assets.partitions import MODELS, OWNERS
from assets.pictures import loss_table
from problems.rl_parquet import prompt_text
from problems.sources.compositional import demonstration
from resources.workshop import Made, Workshop, result


@dg.asset(group_name=MODELS, kinds={"pytorch", "huggingface"}, owners=OWNERS[MODELS], deps=[base_model, clean_problems])
def sft_checkpoint(context: dg.AssetExecutionContext, workshop: Workshop) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """The base model after next-token training on the demonstrations; the first champion, and honestly weak."""
    with workshop.bench(context) as bench:
        clean, base = bench.store.require("datasets", "clean_problems"), bench.store.require("checkpoints", "base_model")
        config = bench.profile.warm_up

        def make(folder: Path) -> Made:
            from verl_jobs.warm_up import warm_up

            chats = [(prompt_text(problem), demonstration(problem)) for problem in demonstrations(clean.path)]
            told = bench.stage.progress
            losses = warm_up(base.path, chats, config, folder, lambda step, loss: told.at(step, config.steps, f"loss {loss:.3f}"))
            (folder / "losses.json").write_text(json.dumps([round(loss, 6) for loss in losses]), encoding="utf-8")
            return Made({"demonstrations": len(chats), "first_loss": losses[0], "last_loss": losses[-1]})

        inputs = {"clean_problems": clean.content_hash, "base_model": base.content_hash}
        made = bench.made("checkpoints", "sft_checkpoint", make, version=1, inputs=inputs, config=config.model_dump(mode="json"), seed=config.seed)
        facts = made.manifest.facts
        bench.stage.say(f"loss {facts['first_loss']:.2f} to {facts['last_loss']:.2f}")
    losses = json.loads((made.path / "losses.json").read_text(encoding="utf-8"))
    metadata = {"demonstrations": facts["demonstrations"], "last_loss": facts["last_loss"], "loss": dg.MetadataValue.md(loss_table(losses))}
    return result(made, metadata)
