"""The base model: created from scratch, copied from a folder, converted from a GGUF file, or
downloaded from the hub.

In: the profile's `base`, and clean problems for the tokenizer of a new model. Out: a Hugging Face
folder.
"""

import shutil
from contextlib import suppress
from pathlib import Path

import dagster as dg

from artifacts.store import Artifact
from assets.stages import STAGES, asset_of
from problems.demonstrations import chats, demonstrations
from resources.apart import apart
from resources.capacity import check_fetched
from resources.config.profile import Profile
from resources.home import NotReady
from resources.run_context import RunContext, StageContext, StageOutput, result
from verl_jobs.gguf.convert import NOT_STATED
from verl_jobs.gguf.source import names_gguf
from verl_jobs.sft.generation import make_savable
from verl_jobs.sft.start import UnfitStart


@dg.asset(
    **asset_of("base_model"),
    kinds={"huggingface"},
)
def base_model(context: dg.AssetExecutionContext, run_context: RunContext) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """A Qwen2 model with random weights and its own BPE tokenizer (embedded profile), or the
    checkpoint named by `base`.
    """
    with run_context.stage(context) as stage:
        base = stage.profile.base
        make = _from_gguf if names_gguf(base) else _from_hub if base else _from_scratch
        artifact = make(stage)
        if warning := check_fetched(stage.profile, artifact.path):
            context.log.warning(warning)
        parameters = artifact.manifest.facts.get("parameters", 0)
        stage.report.say(
            stage.profile.base or f"{parameters / 1e6:.2f} million parameters, random weights"
        )
    return result(
        artifact,
        {"parameters": parameters, "config": dg.MetadataValue.json(artifact.manifest.config)},
    )


def _from_scratch(stage: StageContext) -> Artifact:
    config = stage.profile.tiny_model
    clean = stage.store.require("datasets", "clean_problems")

    def make(folder: Path) -> StageOutput:
        from verl_jobs.sft.tiny_model import make

        texts = [
            text
            for prompt, program in chats(demonstrations(clean.path), base="")
            for text in (*(message["content"] for message in prompt), program)
        ]
        return StageOutput({"parameters": make(config, texts, folder)})

    inputs = {"clean_problems": clean.content_hash}
    return stage.artifact(
        STAGES["base_model"],
        make,
        inputs=inputs,
        config=config.model_dump(mode="json"),
        seed=config.seed,
    )


def _from_hub(stage: StageContext) -> Artifact:
    name = stage.profile.base

    def make(folder: Path) -> StageOutput:
        source = Path(name) if Path(name).is_dir() else snapshot(name, "profile key base")
        shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
        apart(make_savable, folder)
        _check_trainable(name, folder, stage.profile)
        return StageOutput({"source": name, "licence": licence_of(folder)})

    return stage.artifact(STAGES["base_model"], make, inputs={}, config={"base": name})


def _from_gguf(stage: StageContext) -> Artifact:
    from verl_jobs.gguf.convert import convert
    from verl_jobs.gguf.source import find

    name = stage.profile.base
    try:
        source = find(name)
    except UnfitStart as error:
        raise NotReady(f"profile key base: {error}") from None

    def make(folder: Path) -> StageOutput:
        try:
            facts = convert(source, folder)
        except UnfitStart as error:
            raise NotReady(f"profile key base: {error}") from None
        _check_trainable(name, folder, stage.profile)
        return StageOutput({"source": name, **facts})

    return stage.artifact(
        STAGES["base_model"], make, inputs={"gguf": source.sha256()}, config={"base": name}
    )


def _check_trainable(name: str, folder: Path, profile: Profile) -> None:
    """Check the model before a GPU is used. Raises NotReady."""
    from verl_jobs.sft.start import check_start

    training = profile.training
    try:
        apart(
            check_start,
            folder,
            tokens=training.prompt_tokens + training.response_tokens,
            frozen=training.frozen,
            lora=training.lora,
        )
    except UnfitStart as error:
        raise NotReady(
            f"profile key base: {name!r} cannot be trained: "
            f"{str(error).replace(f'{folder}', name, 1)}"
        ) from None


def licence_of(folder: Path) -> str:
    """Return the licence in the model card of a Hugging Face folder."""
    from huggingface_hub import ModelCard

    card, licence = folder / "README.md", None
    if card.is_file():
        with suppress(ValueError):  # its head is not YAML
            licence = ModelCard.load(card).data.get("license")
    return str(licence or NOT_STATED)


def snapshot(hub_id: str, setting: str) -> Path:
    """Return the folder of a hub model, which is downloaded if it is not cached.

    setting: the key or option that names the model. Raises NotReady, which names the setting and
    the fix, if the download fails.
    """
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(hub_id, ignore_patterns=["*.bin", "*.pth", "*.gguf"]))
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else ""
        fix = "check the id and the network, or name a local folder"
        raise NotReady(
            f"{setting}: {hub_id!r} is not a local folder, and its download failed "
            f"({type(error).__name__}: {reason}): {fix}"
        ) from None
