"""Find the version of a benchmark that a stored score was made on: the same tasks and prompts.

In: a scorecard and its home. Out: the benchmark, with the scorecard's generation settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from artifacts.manifest import Manifest
from artifacts.passport import ManifestIndex
from artifacts.store import Artifact
from evaluation.benchmark_settings import BenchmarkSettings
from evaluation.benchmarks import NotMeasured, heldout, validation
from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.embedded import EMBEDDED, own_heldout
from evaluation.benchmarks.registry import measured, published
from evaluation.sampling import Sampling
from evaluation.scorecard import Scorecard
from problems.embedded.heldout import heldout_tasks
from problems.embedded.settings import FamilyConfig
from problems.schema import read_parquet
from resources.config.profile import Profile
from resources.home import NotReady
from resources.settings import Settings


class NotReproducible(NotReady):
    """An input of the score is missing; the message names it and the fix."""


def scored_benchmark(
    card: Scorecard, artifact: Artifact, index: ManifestIndex, settings: Settings
) -> Benchmark:
    """Return the benchmark in the scorecard's version. Raises NotReproducible if it is missing."""
    others = []
    for candidate in _candidates(card, artifact, index, settings):
        if isinstance(candidate, NotMeasured):
            raise NotReproducible(f"{card.benchmark}: {candidate.reason}")
        if candidate.version == card.benchmark_version:
            return replace(candidate, sampling=Sampling.model_validate(card.sampling))
        others.append(candidate.version[:12])
    present = ", ".join(dict.fromkeys(others)) or "none"
    fix = (
        "use the version of Ratchet that drew them"
        if card.benchmark == "heldout"
        else "add the file that was scored"
    )
    raise NotReproducible(
        f"the tasks of {card.benchmark}, version {card.benchmark_version[:12]}, are missing "
        f"(present versions: {present}): {fix}"
    )


def _candidates(
    card: Scorecard, artifact: Artifact, index: ManifestIndex, settings: Settings
) -> Iterator[Benchmark | NotMeasured]:
    """Yield every version of the scorecard's benchmark that this home can build."""
    store, profile = settings.store, settings.profile
    if card.benchmark == "heldout":
        if not all(task.startswith(f"{EMBEDDED}/") for task in card.solved):
            for version in store.versions("datasets", "clean_problems")[::-1]:
                if own := own_heldout(read_parquet(version.path / "problems.parquet")):
                    yield heldout(own)
            return
        manifests = [manifest for versions in index.by_content.values() for manifest in versions]
        for family in _families(manifests, profile.family):
            if benchmark := _heldout(card, family):
                yield benchmark
    elif card.benchmark == "validation":
        for version in store.versions("datasets", "clean_problems")[::-1]:
            yield validation(read_parquet(version.path / "problems.parquet"))
    elif settings_of := _benchmark_settings(card, profile):
        for prompt in ("chat", "upstream"):
            yield measured(
                settings_of.model_copy(update={"prompt": prompt}),
                settings.home.path,
                profile.evaluation.hub,
            )


def _families(manifests: Sequence[Manifest], current: FamilyConfig) -> list[FamilyConfig]:
    """Return the families of problems that this home used, then the profile's."""
    known = FamilyConfig.model_fields
    configs = [
        json.dumps({key: value for key, value in manifest.config.items() if key in known})
        for manifest in manifests
        if manifest.name == "raw_problems"
    ]
    families = [*map(FamilyConfig.model_validate_json, configs), current]
    return [family for at, family in enumerate(families) if family not in families[:at]]


def _heldout(card: Scorecard, family: FamilyConfig) -> Benchmark | None:
    """Return the tasks that the scorecard's task ids number; None for ids without a number."""
    id_parts = [task.split("/")[2:] for task in card.solved]
    if any(len(parts) != 2 for parts in id_parts):
        return None
    first = min(int(number) for _, number in id_parts)
    return heldout(heldout_tasks(family, first, len(id_parts)))


def _benchmark_settings(card: Scorecard, profile: Profile) -> BenchmarkSettings | None:
    """Return the profile's settings of the scorecard's benchmark, else those of the published
    benchmark.
    """
    if settings := profile.evaluation.settings_of(card.benchmark):
        return settings
    known = card.benchmark.partition("@")[0] in published()
    return BenchmarkSettings(name=card.benchmark) if known else None
