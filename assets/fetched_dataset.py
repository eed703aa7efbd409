"""The dataset at the profile's `dataset`, in place of one made from sources.

In: the URL of a folder that `ratchet data build --out` or `ratchet data clean` wrote. Out: the same
artifact in this home, with the same content hash.
"""

from __future__ import annotations

from pathlib import Path

from artifacts.manifest import Manifest
from artifacts.portable import fetch, manifest_at
from artifacts.store import Artifact
from assets.stages import STAGES
from resources.home import NotReady
from resources.run_context import StageContext, StageOutput

KIND, NAME = "datasets", "clean_problems"


def dataset_manifest(url: str) -> Manifest:
    """Return the manifest of the dataset at a URL. Raises NotReady if there is no dataset."""
    fix = "give a folder that `ratchet data build --out` or `ratchet data clean --to` wrote"
    try:
        manifest = manifest_at(url)
    except OSError as error:
        raise NotReady(f"dataset: {error}: {fix}") from error
    if (manifest.kind, manifest.name) != (KIND, NAME) or manifest.files is None:
        raise NotReady(f"dataset: {url} holds {manifest.name}, no dataset: {fix}")
    return manifest


def fetched_dataset(stage: StageContext) -> Artifact:
    """Return the profile's dataset as this home's artifact; its files are fetched once.

    Raises NotReady, or CorruptArtifact if a file is not the one that the manifest names.
    """
    url = stage.profile.dataset
    manifest = dataset_manifest(url)

    def make(folder: Path) -> StageOutput:
        fetch(url, manifest, folder)
        origin = {"made_at": manifest.created_at, "made_from": manifest.inputs}
        return StageOutput(manifest.facts | origin, isolation=manifest.isolation)

    # The URL does not count: the same dataset elsewhere is the same.
    config = {"dataset": manifest.content_hash}
    return stage.artifact(STAGES[NAME], make, inputs={}, config=config)
