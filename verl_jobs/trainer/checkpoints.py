"""Checkpoints that survive a kill at any moment, and candidates published from them.

verl writes model, optimizer, RNG and dataloader state, then the step's name into
`latest_checkpointed_iteration.txt`, without rename or fsync. So a save counts only if it has a
seal: the file `whole`, written last, with the hash of every other file. Before each start, verl's
tracker is pointed at the newest save whose files still match those hashes. A damaged save is
recorded as a fault (verl_jobs/faults.py) and removed. A candidate has a manifest instead.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from artifacts.atomic import write_atomic
from artifacts.hashing import MANIFEST, content_of, files_of, hash_file
from artifacts.integrity import check, read_manifest, reading, seal
from artifacts.manifest import Manifest
from verl_jobs import faults
from verl_jobs.config.checkpoints import Keep
from verl_jobs.job import FIX, TrainingJob, candidates
from verl_jobs.trainer import trainer_lease
from verl_jobs.trainer.remote_checkpoints import Mirror

SEAL = "whole"
STATE = "state.json"
TRACKER = "latest_checkpointed_iteration.txt"


def complete_saves(saves: Path) -> list[int]:
    """Return the steps of all complete saves, ascending."""
    return steps_of(path.parent.name for path in saves.glob(f"global_step_*/{SEAL}"))


def steps_of(names: Iterable[str]) -> list[int]:
    """Return the steps of folders with verl's names, ascending."""
    matches = (re.fullmatch(r"global_step_(\d+)", name) for name in names)
    return sorted(int(match.group(1)) for match in matches if match)


def seal_save(save: Path, known: Mapping[str, str] | None = None) -> None:
    """Flush the save to disk, then write the hash of each of its files.

    known: hashes by name, of files that were hashed while they were written.
    """
    files = {name: each for name, each in hashed(save, known or {}).items() if name != SEAL}
    sync(save)
    write_atomic(save / SEAL, json.dumps(files, indent=1))


def hashed(folder: Path, known: Mapping[str, str]) -> dict[str, str]:
    """Return the hash of each file, by its name relative to the folder. known: see `seal_save`."""
    return {name: known.get(name) or hash_file(path) for name, path in files_of(folder).items()}


def damage(save: Path) -> str:
    """Return what is wrong with a sealed save; empty if it is intact.

    Names the first missing or changed file.
    """
    try:
        files = json.loads((save / SEAL).read_text(encoding="utf-8")).items()
    except (ValueError, AttributeError):  # no JSON, or no object
        return f"cannot read its seal {SEAL}"
    for name, expected in files:
        path = save / name
        if not path.exists():
            return f"{name} is missing"
        if (actual := hash_file(path)) != expected:
            return (
                f"{name} has {path.stat().st_size} bytes with the hash {actual[:12]}, expected "
                f"{expected[:12]}"
            )
    return ""


def repair(folder: Path) -> int | None:
    """Remove incomplete and damaged saves, and point verl's tracker at the newest good one.

    Called before a start. folder: the training's folder. Returns the step of the good save, or None
    to start from scratch. Candidates of later steps are removed: those steps are repeated, possibly
    with other weights, and an old score must not select the new weights.
    """
    saves = folder / "saves"
    for path in saves.glob("global_step_*"):
        if not (path / SEAL).exists():
            shutil.rmtree(path)
    good = _newest_intact(folder)
    for step, candidate in candidates(folder).items():
        if step > (good or 0):
            _remove(candidate, MANIFEST)
    if good is None:
        (saves / TRACKER).unlink(missing_ok=True)
    else:
        write_atomic(saves / TRACKER, str(good))
    return good


def _newest_intact(folder: Path) -> int | None:
    """Return the step of the newest intact save; record and remove damaged newer ones."""
    for step in reversed(complete_saves(folder / "saves")):
        save = folder / "saves" / f"global_step_{step}"
        if not (fault := damage(save)):
            return step
        faults.record(
            folder,
            (
                f"the save of step {step} is damaged: {fault}; it was removed, and the training "
                "resumes from the save before it"
            ),
        )
        _remove(save, SEAL)
    return None


def restore_settings(job: TrainingJob, step: int | None) -> TrainingJob:
    """Return the job with the settings saved at this step.

    verl does not store the adaptive coefficients of KL and entropy in its checkpoints.
    """
    path = job.path / "saves" / f"global_step_{step}" / STATE
    if step is None or not path.exists():
        return job
    with reading(path, FIX):
        state = dict(json.loads(path.read_text(encoding="utf-8")))
    return job.model_copy(update={"training": job.training.model_copy(update=state)})


def steps_to_keep(steps: Iterable[int], scores: Mapping[int, float], keep: Keep) -> set[int]:
    """Return the steps to keep: the last, the best on validation, and every so many steps.

    Only scored steps count for the best; of equal scores the earlier step wins.
    """
    sorted_steps = sorted(steps)
    best_steps = sorted(
        (step for step in sorted_steps if step in scores), key=lambda step: (-scores[step], step)
    )[: keep.best]
    return {
        *sorted_steps[-keep.last :],
        *best_steps,
        *(step for step in sorted_steps if keep.every and step % keep.every == 0),
    }


def sync(folder: Path) -> None:
    """Flush every file below the folder to disk.

    The seal must never exist before the data it covers.
    """
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def publish_candidate(
    job: TrainingJob, step: int, weights: Path, known: Mapping[str, str] | None = None
) -> Path:
    """Publish a Hugging Face folder of a save as a candidate with a manifest.

    The folder is moved: a save needs no weights for other programs to resume. It gets a temporary
    name, then the manifest, then its own name. Each step is published once, even after kills in
    between. known: hashes by name, of files that were hashed while they were written.
    """
    target = job.path / "candidates" / f"step-{step:06d}"
    if (target / MANIFEST).exists():
        return target
    temporary = target.with_name(f".{target.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.parent.mkdir(exist_ok=True)
    weights.replace(temporary)
    files = hashed(temporary, known or {})
    manifest = Manifest(
        kind="checkpoints",
        name=f"{job.run_id}-step-{step}",
        key=f"{job.key}-{step}",
        content_hash=content_of(files),
        files=files,
        inputs=job.inputs | {"reward": job.reward_hash},
        config=job.training.model_dump(mode="json"),
        seed=job.seed,
        facts={"step": step, "battery": job.battery},
        isolation=job.isolation,
    ).stamped()
    write_atomic(temporary / MANIFEST, seal(manifest.model_dump_json(indent=1)))
    sync(temporary)
    # An old candidate without a manifest: its removal was interrupted, and the training resumed
    # from an earlier step.
    shutil.rmtree(target, ignore_errors=True)
    temporary.replace(target)
    return target


def prune(job: TrainingJob) -> None:
    """Remove saves and candidates that the job's retention policy does not keep."""
    saves, scores, keep = job.path / "saves", job.validations(), job.training.keep
    complete, published = complete_saves(saves), candidates(job.path)
    for step in set(complete) - steps_to_keep(complete, scores, keep):
        _remove(saves / f"global_step_{step}", SEAL)
    for step in set(published) - steps_to_keep(published, scores, keep):
        _remove(published[step], MANIFEST)


def prune_mirror(job: TrainingJob, mirror: Mirror) -> None:
    """Remove from the mirror what the retention policy does not keep.

    A restore downloads only one save, so saves that are only in the mirror count for the policy
    too. Those of later steps do not: they belong to a lost attempt. A restore downloads all
    candidates, so a candidate that is not in the job's folder is removed.
    """
    complete, published = complete_saves(job.path / "saves"), candidates(job.path)
    mirrored = steps_of(mirror.sealed("saves", SEAL))
    keep = steps_to_keep(
        {*complete, *(step for step in mirrored if step <= max(complete))},
        job.validations(),
        job.training.keep,
    )
    for step in set(mirrored) - keep:
        mirror.drop(f"saves/global_step_{step}", SEAL)
    for name in mirror.sealed("candidates", MANIFEST):
        if int(name.removeprefix("step-")) not in published:
            mirror.drop(f"candidates/{name}", MANIFEST)


def end_after_notice(folder: Path, done: int) -> None:
    """Raise TrainingEnded after a notice if the state after step `done` is saved or is the start.

    done: the last completed step.
    """
    if (reason := trainer_lease.notice(folder)) and done == max(
        complete_saves(folder / "saves"), default=0
    ):
        raise trainer_lease.TrainingEnded(reason)


def best(folder: Path, scores: dict[int, float]) -> tuple[int, Path]:
    """Return the candidate with the best validation score, the earlier one of equal scores.

    Raises LookupError if no candidate was scored, CorruptArtifact if that one was changed since.
    """
    scored = {step: path for step, path in candidates(folder).items() if step in scores}
    if not scored:
        raise LookupError(
            f"{folder}: no candidate has a validation score, because the run saved nothing: see "
            "the log there"
        )
    step = max(scored, key=lambda step: (scores[step], -step))
    check(scored[step], read_manifest(scored[step] / MANIFEST), fix=FIX)
    return step, scored[step]


def _remove(folder: Path, last_file: str) -> None:
    """Remove a folder, first the file that makes it count: a partly removed one never does."""
    (folder / last_file).unlink(missing_ok=True)
    shutil.rmtree(folder)
