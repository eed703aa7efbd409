"""What makes verl's checkpoints safe against a kill at any moment and against damage afterwards, and candidates of them that others can read.

verl writes model, optimizer, RNG and dataloader state, then the name of the step into `latest_checkpointed_iteration.txt`: no rename, no fsync.
So a save counts only once its seal is there: the file `whole`, written last, with the hash of every other. Before each start the newest save whose
files still have those hashes is the one that verl's tracker names; one that is damaged is told as a fault (verl_jobs/faults.py) and removed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from artifacts.hashing import hash_file, hash_folder
from artifacts.manifest import NAME, Manifest
from artifacts.store import write_atomic
from verl_jobs import faults
from verl_jobs.config.training import Keep
from verl_jobs.job import TrainingJob, candidates
from verl_jobs.trainer import trainer_lease as owner
from verl_jobs.trainer.remote_checkpoints import Mirror

SEAL = "whole"
STATE = "state.json"
TRACKER = "latest_checkpointed_iteration.txt"


def whole_saves(saves: Path) -> list[int]:
    """Steps of all saves that were finished, ascending."""
    return steps_of(path.parent.name for path in saves.glob(f"global_step_*/{SEAL}"))


def steps_of(names: Iterable[str]) -> list[int]:
    """The steps of folders with verl's names, ascending."""
    found = (re.fullmatch(r"global_step_(\d+)", name) for name in names)
    return sorted(int(match.group(1)) for match in found if match)


def seal(save: Path) -> None:
    """Flushes the save to disk and writes the hash of each of its files, last."""
    files = {
        path.relative_to(save).as_posix(): hash_file(path)
        for path in sorted(save.rglob("*"))
        if path.is_file() and path.name != SEAL
    }
    sync(save)
    write_atomic(save / SEAL, json.dumps(files, indent=1))


def damage(save: Path) -> str:
    """What is wrong with a sealed save: the first file that is missing or other than it was; empty where all is well."""
    try:
        files: dict[str, str] = json.loads((save / SEAL).read_text(encoding="utf-8"))
    except ValueError:
        return f"its seal {SEAL} cannot be read"
    for name, wanted in files.items():
        path = save / name
        if not path.exists():
            return f"{name} is missing"
        if (found := hash_file(path)) != wanted:
            return f"{name} has {path.stat().st_size} bytes that hash to {found[:12]}, not to {wanted[:12]}"
    return ""


def repair(folder: Path) -> int | None:
    """Before a start: drops saves that are half-written or damaged and points verl's tracker at the newest good one, whose step is returned.

    folder: of the training. None: it begins from the start. Candidates of later steps go: those steps are done again, maybe to other weights, and a
    score of the one must not choose the other.
    """
    saves = folder / "saves"
    for path in saves.glob("global_step_*"):
        if not (path / SEAL).exists():
            shutil.rmtree(path)
    good = _newest_good(folder)
    for step, candidate in candidates(folder).items():
        if step > (good or 0):
            _remove(candidate, NAME)
    if good is None:
        (saves / TRACKER).unlink(missing_ok=True)
    else:
        write_atomic(saves / TRACKER, str(good))
    return good


def _newest_good(folder: Path) -> int | None:
    """Removes and tells the damaged saves that are newer."""
    for step in reversed(whole_saves(folder / "saves")):
        save = folder / "saves" / f"global_step_{step}"
        if not (why := damage(save)):
            return step
        faults.record(
            folder,
            f"the save of step {step} is damaged: {why}; it is removed, and the training goes on from what was saved before it",
        )
        _remove(save, SEAL)
    return None


def restored(job: TrainingJob, step: int | None) -> TrainingJob:
    """The job as it stood at this save: verl leaves the adaptive KL coefficient out of its checkpoints."""
    path = job.path / "saves" / f"global_step_{step}" / STATE
    if step is None or not path.exists():
        return job
    state = json.loads(path.read_text(encoding="utf-8"))
    return job.model_copy(update={"training": job.training.model_copy(update=state)})


def kept(steps: Iterable[int], scores: Mapping[int, float], keep: Keep) -> set[int]:
    """Which saves stay: the last, the best on validation of those that have been scored (the earlier of equals), and every so many steps."""
    there = sorted(steps)
    best = sorted(
        (step for step in there if step in scores), key=lambda step: (-scores[step], step)
    )[: keep.best]
    return {
        *there[-keep.last :],
        *best,
        *(step for step in there if keep.every and step % keep.every == 0),
    }


def sync(folder: Path) -> None:
    """Flushes every file below to disk: the seal must not outlive the bytes it stands for."""
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def publish_candidate(job: TrainingJob, step: int, weights: Path) -> Path:
    """Copies a Hugging Face folder beside, hashes it, and renames it into place with its manifest. Done once a step, whatever happens between."""
    target = job.path / "candidates" / f"step-{step:06d}"
    if (target / NAME).exists():
        return target
    beside = target.with_name(f".{target.name}")
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(weights, beside)
    manifest = Manifest(
        kind="checkpoints",
        name=f"{job.chain}-step-{step}",
        key=f"{job.key}-{step}",
        content_hash=hash_folder(beside),
        inputs=job.inputs | {"reward": job.reward_hash},
        config=job.training.model_dump(mode="json"),
        seed=job.seed,
        facts={"step": step, "battery": job.battery},
        isolation=job.isolation,
    ).stamped()
    write_atomic(beside / NAME, manifest.model_dump_json(indent=1))
    sync(beside)
    shutil.rmtree(
        target, ignore_errors=True
    )  # without its manifest: a kill came while it was removed, and the training has gone back behind it
    beside.replace(target)
    return target


def prune(job: TrainingJob) -> None:
    """Removes saves and candidates that the job's policy does not keep."""
    saves, scores, keep = job.path / "saves", job.validations(), job.training.keep
    whole, published = whole_saves(saves), candidates(job.path)
    for step in set(whole) - kept(whole, scores, keep):
        _remove(saves / f"global_step_{step}", SEAL)
    for step in set(published) - kept(published, scores, keep):
        _remove(published[step], NAME)


def prune_mirror(job: TrainingJob, mirror: Mirror) -> None:
    """Removes there what the policy does not keep. A restore brings one save alone: the others count as well, but for those of later steps, which
    are of a life that is lost. Candidates it brings all: what is not here goes.
    """
    whole, published = whole_saves(job.path / "saves"), candidates(job.path)
    there = steps_of(mirror.sealed("saves", SEAL))
    stay = kept(
        {*whole, *(step for step in there if step <= max(whole))},
        job.validations(),
        job.training.keep,
    )
    for step in set(there) - stay:
        mirror.drop(f"saves/global_step_{step}", SEAL)
    for name in mirror.sealed("candidates", NAME):
        if int(name.removeprefix("step-")) not in published:
            mirror.drop(f"candidates/{name}", NAME)


def end_if_asked(folder: Path, done: int) -> None:
    """Raises owner.Ended where a notice was given and the state after step `done`, the last one, is saved or is the start."""
    if (why := owner.notice(folder)) and done == max(whole_saves(folder / "saves"), default=0):
        raise owner.Ended(why)


def best(folder: Path, scores: dict[int, float]) -> tuple[int, Path]:
    """The candidate with the best validation score, the earlier one of equals. Raises LookupError when none was scored."""
    scored = {step: path for step, path in candidates(folder).items() if step in scores}
    if not scored:
        raise LookupError(
            f"{folder}: no candidate has a validation score: the run saved nothing; its log is beside it"
        )
    step = max(scored, key=lambda step: (scores[step], -step))
    return step, scored[step]


def _remove(folder: Path, seal: str) -> None:
    """The seal first, so that what is half-removed never counts."""
    (folder / seal).unlink(missing_ok=True)
    shutil.rmtree(folder)
