"""What stays on disk after a decision: everything that something names, and no more.

In: the home's records, the ledger, the releases, and the rule in `storage`. Out: a `Removal` for
each thing that nothing names any more. Checkpoints and datasets leave their manifests, so that
provenance stays whole; scores and reports stay, because decisions cite them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from artifacts.integrity import CorruptArtifact
from artifacts.manifest import Manifest
from artifacts.passport import ManifestIndex
from artifacts.store import Store
from resources.config.infrastructure import Storage
from resources.home import Home
from resources.registry.ledger import Entry, champions, previous_of
from resources.registry.releases import Release, deployed
from resources.run_record import RunRecord, locked, newest_id, records

SETTLED = timedelta(hours=1)  # a dataset younger than this may not have been pointed at yet
STARTS = ("base_model", "sft_checkpoint")  # each training may begin from the present ones


@dataclass(frozen=True)
class Removal:
    """Something that nothing names. `bytes` is its size, without what it shares by links."""

    path: str
    bytes: int
    reason: str


def collect(
    home: Home,
    store: Store,
    history: Sequence[Entry],
    releases: Sequence[Release],
    storage: Storage,
    *,
    dry_run: bool = False,
) -> list[Removal]:
    """Remove what nothing names, and return it. Safe beside runs: what an open run or release
    names stays, and no run can begin while the choice is made.

    history: the ledger's entries. dry_run: remove nothing. Raises CorruptArtifact, and removes
    nothing, if a record or a manifest cannot be read.
    """
    with locked(home.runs):
        known = records(home.runs)
        names = {record.id for record in known if record.state == "open"} | {newest_id(home.runs)}
        hashes = _versions(history, releases, storage.keep_versions) | {
            record.champion.content_hash
            for record in known
            if record.state == "open" and record.champion
        }
        ended = {record.id for record in known} - names
        unnamed = _unnamed(store, ended, {name.partition("--")[0] for name in names}, hashes)
        removals = [
            Removal(store.at(manifest), store.size(manifest), reason)
            for manifest, reason in unnamed
        ]
        if not dry_run:
            for manifest, _ in unnamed:
                store.retire(manifest)
    for record in known:
        for folder in _finished(home, record, storage.keep_saves):
            removals.append(Removal(str(folder), size_of(folder), f"{record.id} has ended"))
            if not dry_run:
                shutil.rmtree(folder)
        copies = f"trainings/{record.id}"  # of its saves, in an object store
        superfluous = record.state != "open" and not storage.keep_saves
        if superfluous and not store.is_local and store.folder.has(copies):
            size = store.folder.size(copies)
            removals.append(Removal(store.folder.at(copies), size, f"{record.id} has ended"))
            if not dry_run:
                store.folder.remove(copies)
    if not dry_run:
        store.sweep()
    return removals


def _versions(history: Sequence[Entry], releases: Sequence[Release], count: int) -> set[str]:
    """Return the content hashes of the versions that stay."""
    stack = champions(history)
    kept = [*stack[-count:], *([previous] if (previous := previous_of(history)) else [])]
    numbers = {deployed(releases)} | {
        version
        for release in releases
        if release.open
        for version in (release.champion, *release.challengers)
    }
    return {
        entry.checkpoint_hash for entry in [*kept, *(e for e in history if e.version in numbers)]
    }


def _unnamed(
    store: Store, ended: set[str], names: set[str], hashes: set[str]
) -> list[tuple[Manifest, str]]:
    """Return checkpoints and datasets that nothing names, each with the reason.

    ended: names of checkpoints whose runs have ended. names, hashes: of the checkpoints that stay.
    Datasets that they were made from stay too. Other homes may use an object store, so there only
    checkpoints of this home's runs are returned.
    """
    index = ManifestIndex.of(store)
    if index.damaged:
        raise CorruptArtifact(index.damaged[0])
    every = [each for manifests in index.by_content.values() for each in manifests]
    present = {
        (kind, name): artifact.manifest.key
        for kind in ("datasets", "checkpoints")
        for name in store.names(kind)
        if (kind == "datasets" or name in STARTS) and (artifact := store.current(kind, name))
    }

    young = (datetime.now(UTC) - SETTLED).isoformat(timespec="seconds")

    def stays(manifest: Manifest) -> bool:
        return (
            present.get((manifest.kind, manifest.name)) == manifest.key
            or (manifest.kind == "datasets" and manifest.created_at > young)
            or manifest.name in names
            or manifest.content_hash in hashes
        )

    needed: set[str] = set()
    pending = [each for each in every if stays(each)]
    while pending:
        for content in pending.pop().inputs.values():
            if content not in needed:
                needed.add(content)
                made_from = index.by_content.get(content, [])
                pending += [each for each in made_from if each.kind == "datasets"]
    reasons = {
        "checkpoints": "neither champion nor previous, and decided",
        "datasets": "replaced, and no kept checkpoint was made from it",
    }
    return [
        (each, reasons[each.kind])
        for each in every
        if each.kind in reasons
        and (
            each.name in ended
            or (store.is_local and (each.kind == "datasets" or each.name in STARTS))
        )
        and not stays(each)
        and not (each.kind == "datasets" and each.content_hash in needed)
        and store.has(each)
    ]


def _finished(home: Home, record: RunRecord, keep_saves: int) -> Iterator[Path]:
    """Yield the folders of a run's saves and candidates that its end has made superfluous."""
    from verl_jobs.trainer.checkpoints import complete_saves

    if record.state == "open":
        return
    for training in sorted((home.runs / record.id / "training").glob("*")):
        steps = complete_saves(training / "saves")
        kept = {f"global_step_{step}" for step in steps[len(steps) - keep_saves :]}
        for folder in sorted((training / "saves").glob("global_step_*")):
            if folder.name not in kept:
                yield folder
        if (training / "candidates").is_dir():
            yield training / "candidates"


def size_of(folder: Path) -> int:
    """Return the bytes that removing a folder frees: files with another link are left out."""
    states = [path.lstat() for path in folder.rglob("*") if path.is_file()]
    return sum(state.st_size for state in states if state.st_nlink == 1)
