"""What stays on disk after a decision: everything that something names, and no more.

In: the home's records, the ledger, the releases, and the rule in `storage`. Out: a `Removal` for
each thing that nothing names any more. Checkpoints and datasets leave their manifests, so that
provenance stays whole; scores and reports stay, because decisions cite them. What is in doubt
stays: nothing is removed while another process trains in the home, while a record, a manifest or
the ledger cannot be read, or from a store at a URL, which other homes may use.
"""

from __future__ import annotations

import fcntl
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from artifacts.integrity import CorruptArtifact
from artifacts.manifest import Manifest
from artifacts.passport import ManifestIndex
from artifacts.store import Store
from resources import lease
from resources.config.infrastructure import Storage
from resources.config.load import ProfileError, load_profile
from resources.home import Home, NotReady
from resources.registry.ledger import Entry, Ledger, LedgerChanged, champions, previous_of
from resources.registry.ledger_database import LedgerUnreachable
from resources.registry.releases import Release, Releases, deployed
from resources.run_record import RunRecord, locked, newest_id, records

# What is younger may be about to be named: a start or dataset between its publication and its
# pointer, a checkpoint that is being scored.
SETTLED = timedelta(hours=1)
NOTHING_REMOVED = (  # the reasons for it, as exceptions
    CorruptArtifact,
    LedgerChanged,
    LedgerUnreachable,
    NotReady,
    ProfileError,
    lease.LeaseHeld,
)
STARTS = ("base_model", "sft_checkpoint")  # each training may begin from the present ones


@dataclass(frozen=True)
class Removal:
    """Something that nothing names. `bytes` is its size, without what it shares by links."""

    path: str
    bytes: int
    reason: str


@contextmanager
def uncollected(home: Home) -> Iterator[None]:
    """Hold the lock of one collection or backup at a time. Raises NotReady while another runs."""
    home.make()
    with (home.path / ".collecting").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise NotReady(
                f"another clean-up or backup of {home.path} runs: wait for it"
            ) from error
        yield


@contextmanager
def collecting(home: Home) -> Iterator[None]:
    """Hold the lock of a collection. Raises NotReady as `uncollected` does, and LeaseHeld while
    another process trains in the home.
    """
    with uncollected(home):
        if (holder := lease.holder(home.lease)) and holder.token != lease.token(home.lease):
            raise lease.LeaseHeld(holder, home.lease)
        yield


def collect(
    home: Home, store: Store, ledger: Ledger, storage: Storage, *, dry_run: bool = False
) -> list[Removal]:
    """Remove what nothing names, and return it. Call it within `collecting`.

    dry_run: remove nothing. Raises CorruptArtifact and LedgerChanged, and removes nothing, if a
    record, a manifest or the ledger is damaged; ProfileError without the newest run's profile.
    """
    known = records(home.runs)
    ledger.compare({record.id: record.decision for record in known if record.decision})
    storage = _rule(known, storage)
    removals = []
    if store.is_local:
        index = ManifestIndex.of(store)
        if index.damaged:
            raise CorruptArtifact(index.damaged[0])
        # No run begins and no decision is recorded between the choice and the renames.
        with locked(home.runs), ledger.held() as history:
            named = Named(home, store, history, Releases(ledger.place).all(), storage)
            for manifest, reason in named.unnamed(index):
                removals.append(Removal(store.at(manifest), store.size(manifest), reason))
                if not dry_run:
                    store.retire(manifest)
    for record in known:
        for folder in _finished(home, record, storage.keep_saves):
            removals.append(Removal(str(folder), size_of(folder), f"{record.id} has ended"))
            if not dry_run:
                shutil.rmtree(folder)
    if store.is_local and not dry_run:
        store.sweep()
    return removals


def _rule(known: Sequence[RunRecord], storage: Storage) -> Storage:
    """Return the rule that keeps the most of the given one and that of the newest pipeline run's
    profile: a command may have been called without that profile.
    """
    runs = [record for record in known if record.kind == "pipeline"]
    for record in runs[-1:]:
        other = load_profile(record.profile, record.changes, unverified=True).storage
        names = ("keep_versions", "keep_saves")
        most = {name: max(getattr(storage, name), getattr(other, name)) for name in names}
        storage = storage.model_copy(update=most)
    return storage


class Named:
    """What the records, the ledger and the releases name at one moment."""

    def __init__(
        self,
        home: Home,
        store: Store,
        history: Sequence[Entry],
        releases: Sequence[Release],
        storage: Storage,
    ) -> None:
        known = records(home.runs)
        self.store = store
        self.working = [each for each in known if _is_open(each) or _is_active(home, each)]
        kept = {each.id for each in self.working} | {newest_id(home.runs)}
        kept |= {each.id for each in known if each.kind == "evaluation" and not each.decision}
        self.ended = {each.id for each in known} - kept
        self.names = {name.partition("--")[0] for name in kept}
        self.hashes = _versions(history, releases, storage.keep_versions) | {
            each.champion.content_hash for each in self.working if each.champion
        }

    def unnamed(self, index: ManifestIndex) -> list[tuple[Manifest, str]]:
        """Return checkpoints and datasets that nothing names, each with the reason. While a run is
        open, datasets and starts stay: its job files name some.
        """
        every = [each for manifests in index.by_content.values() for each in manifests]
        needed: set[str] = set()
        pending = [each for each in every if self._stays(each)]
        while pending:
            for content in pending.pop().inputs.values():
                if content not in needed:
                    needed.add(content)
                    made_from = index.by_content.get(content, [])
                    pending += [each for each in made_from if each.kind == "datasets"]
        return [
            (each, self._reason(each))
            for each in every
            if each.kind in ("checkpoints", "datasets")
            and not self._stays(each)
            and not (each.kind == "datasets" and each.content_hash in needed)
            and self.store.has(each)
        ]

    def _stays(self, manifest: Manifest) -> bool:
        if manifest.kind == "datasets" or manifest.name in STARTS:
            young = (datetime.now(UTC) - SETTLED).isoformat(timespec="seconds")
            current = self.store.current_key(manifest.kind, manifest.name) == manifest.key
            opened = any(map(_is_open, self.working))
            return current or opened or manifest.created_at > young
        return (
            manifest.name not in self.ended
            or manifest.name in self.names
            or manifest.content_hash in self.hashes
        )

    def _reason(self, manifest: Manifest) -> str:
        if manifest.kind == "datasets":
            return "replaced, and no kept checkpoint was made from it"
        return "replaced" if manifest.name in STARTS else "neither champion nor previous"


def _is_open(record: RunRecord) -> bool:
    return record.state == "open" and record.kind in ("pipeline", "study")


def _is_active(home: Home, record: RunRecord) -> bool:
    """Whether a stage of the record has reported lately: it may run."""
    progress = home.runs / record.id / "progress.jsonl"
    age = time.time() - progress.stat().st_mtime if progress.exists() else float("inf")
    return age < SETTLED.total_seconds()


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


def _finished(home: Home, record: RunRecord, keep_saves: int) -> Iterator[Path]:
    """Yield the folders of a run's saves and candidates that its end has made superfluous."""
    from verl_jobs.trainer.checkpoints import complete_saves

    if record.state == "open":
        return
    for training in sorted((home.runs / record.id / "training").glob("*")):
        steps = complete_saves(training / "saves")
        kept = {f"global_step_{step}" for step in steps[len(steps) - keep_saves :]}
        folders = [*sorted((training / "saves").glob("global_step_*")), training / "candidates"]
        for folder in folders:
            if folder.name not in kept and folder.is_dir() and not folder.is_symlink():
                yield folder


def size_of(folder: Path) -> int:
    """Return the bytes that removing a folder frees: files with another link are left out."""
    states = [path.lstat() for path in folder.rglob("*") if path.is_file()]
    return sum(state.st_size for state in states if state.st_nlink == 1)
