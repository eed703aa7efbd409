"""Checkpoint callback of verl, and the download from the mirror before a start.

After each save, the callback seals it and uploads it to the mirror, while the training continues. A
notice to end triggers an extra save, and waits for it. verl creates `AfterSave` in the trainer's
process and calls it after each save. All files are in the job's folder.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from artifacts.atomic import write_atomic
from artifacts.hashing import MANIFEST
from artifacts.integrity import CorruptArtifact, check, read_manifest, reading
from verl_jobs import faults
from verl_jobs.adapter.versions import adapter
from verl_jobs.config.lora import merge_folder
from verl_jobs.job import FIX, WANDB_ADDRESS, TrainingJob, candidates, next_attempt
from verl_jobs.trainer import checkpoints, progress, trainer_lease
from verl_jobs.trainer.background import Background
from verl_jobs.trainer.entropy import WEIGHT, Entropy
from verl_jobs.trainer.fence import check_fence
from verl_jobs.trainer.rank_save import WEIGHTS, collect
from verl_jobs.trainer.remote_checkpoints import Mirror
from verl_jobs.trainer.trainer_lease import TrainingEnded

KEY = "key"
LISTEN_S = 0.5


class ForeignMirror(RuntimeError):
    """The mirror holds another training's checkpoints. The message is one line."""


def fetch(job: TrainingJob) -> None:
    """Download what the mirror has beyond this folder.

    That is the newest complete save, candidates and metrics, each checked against its own hashes. A
    damaged local save is replaced by its copy in the mirror, or by an earlier one.

    Raises ForeignMirror, and the file system's error if the mirror cannot be reached: a restart
    from scratch would lose saves that are only temporarily unreachable.
    """
    if not job.mirror:
        return
    mirror, saves = Mirror(job.mirror, partial(progress.touch, job.path)), job.path / "saves"
    if (key := (mirror.read(KEY) or job.key.encode()).decode(errors="replace")) != job.key:
        error = (
            f"{job.mirror} holds the saves of another training (its key is {key[:20]}, this one's "
            f"{job.key[:20]})"
        )
        raise ForeignMirror(f"{error}: move them, or use another prefix in storage.root")
    local_step, broken = 0, dict[int, str]()
    for step in reversed(checkpoints.complete_saves(saves)):
        if not (fault := checkpoints.damage(saves / f"global_step_{step}")):
            local_step = step
            break
        broken[step] = fault
    for step in reversed(checkpoints.steps_of(mirror.sealed("saves", checkpoints.SEAL))):
        save = saves / f"global_step_{step}"
        if step <= local_step:
            break
        mirror.pull(f"saves/{save.name}", save)
        if not (fault := checkpoints.damage(save)):
            if step in broken:
                faults.record(
                    job.path,
                    (
                        f"the save of step {step} is damaged: {broken[step]}; its copy in "
                        f"{job.mirror} replaces it"
                    ),
                )
            break
        faults.record(
            job.path,
            f"the copy of step {step} in {job.mirror} is damaged: {fault}; trying the one before",
        )
        shutil.rmtree(save)
    for name in mirror.sealed("candidates", MANIFEST):
        candidate = job.path / "candidates" / name
        if not (candidate / MANIFEST).exists():
            mirror.pull(f"candidates/{name}", candidate)
            try:
                check(candidate, read_manifest(candidate / MANIFEST))
            except CorruptArtifact:
                faults.record(
                    job.path,
                    f"the copy of candidate {name} in {job.mirror} is damaged and was not used",
                )
                shutil.rmtree(candidate)
    mirror.pull_files("metrics-*.jsonl", job.path)


class AfterSave:
    """Implementation of verl's `trainer.checkpoint_callback_class`, which runs after each save.

    Interface: verl/trainer/ppo/checkpoint_callback.py. Its exceptions end the training, at the next
    save, because a checkpoint that was not stored safely on the local disk is worthless. A failure
    of the mirror is only recorded as a fault, and the training continues.
    """

    def __init__(self, config: Any = None) -> None:
        self.config = config
        self.job = TrainingJob.read(Path(config.trainer.default_local_dir).parent / "job.json")
        progress.begin(self.job.path, "start of verl")
        # verl creates this object in the trainer's process before its loggers read these variables.
        os.environ["VERL_FILE_LOGGER_PATH"] = str(
            self.job.path / f"metrics-{next_attempt(self.job.path):03d}.jsonl"
        )
        os.environ["WANDB_DIR"] = str(self.job.path)
        # pods of KubeRay do not get this variable
        os.environ.setdefault(
            "WANDB_MODE", "online" if os.environ.get("WANDB_API_KEY") else "offline"
        )
        if (sweep := self.job.path / "sweep.json").exists():
            with reading(sweep, FIX):
                os.environ.update(json.loads(sweep.read_text(encoding="utf-8")))
        tags = self.job.tags
        os.environ["WANDB_TAGS"] = ",".join(f"{name}={value}" for name, value in tags.items())
        os.environ["MLFLOW_RUN_CONTEXT"] = json.dumps(tags)
        if self.job.tracking_uri:
            os.environ["MLFLOW_TRACKING_URI"] = self.job.tracking_uri
        copied = partial(progress.touch, self.job.path)
        self.mirror = Mirror(self.job.mirror, copied) if self.job.mirror else None
        self.entropy: Entropy | None = None
        if target := self.job.training.entropy_target:
            # of the save that this attempt resumes from (verl_jobs/trainer/checkpoints.py)
            start = float(config.actor_rollout_ref.actor.entropy_coeff)
            self.entropy = Entropy(start, target)
            adapter().weigh_entropy(self._weigh_entropy)
        self.completing = Background("save")
        self.uploads = ThreadPoolExecutor(1, "mirror")
        self.upload: Future[None] | None = None
        threading.Thread(target=self._save_after_notice, daemon=True, name="notice").start()

    def _weigh_entropy(self, entropy: float, metrics: dict[str, float]) -> float:
        """Return the weight of the entropy in this update's loss."""
        assert self.entropy
        self.entropy = self.entropy.after(entropy)
        metrics[WEIGHT] = self.entropy.weight(entropy)
        return metrics[WEIGHT]

    def on_save(
        self,
        trainer: Any,
        global_step: int,
        checkpoint_dir: str,
        async_save: bool = False,
        **_: Any,
    ) -> None:
        """Complete the save in the background, after the one before it.

        async_save: whether the ranks still write (verl_jobs/trainer/rank_save.py).
        """
        progress.begin(self.job.path, f"save of step {global_step}")
        save, critic = Path(checkpoint_dir), getattr(trainer, "use_critic", False)
        self._store_wandb_address()
        state = {"entropy_coefficient": self.entropy.coefficient} if self.entropy else {}
        if controller := getattr(trainer, "kl_ctrl_in_reward", None):
            state["kl_coefficient"] = float(controller.value)
        if state:
            write_atomic(save / checkpoints.STATE, json.dumps(state))
        writing = (("actor", "critic") if critic else ("actor",)) if async_save else ()
        self.completing.start(lambda: self._complete(save, global_step, writing))
        notice = trainer_lease.notice(self.job.path)
        if notice or global_step >= self.job.training.steps:
            self.await_save()
        # All is saved. Skip the validation, because the next attempt starts with it;
        # verl_jobs/trainer/replay_buffer.py ends this attempt before its next step.
        if notice:
            self.config.trainer.test_freq = -1

    def _complete(self, save: Path, step: int, writing: Iterable[str]) -> None:
        """Publish the candidate, seal the save and start its upload, once the ranks have written.

        writing: folders of the save in which ranks write.
        """
        trainer = self.config.trainer
        ranks = trainer.nnodes * trainer.n_gpus_per_node if writing else 0
        hashes = collect(save, writing, ranks)
        weights = save / "actor" / WEIGHTS
        known = {
            name.removeprefix(f"actor/{WEIGHTS}/"): each
            for name, each in hashes.items()
            if name.startswith(f"actor/{WEIGHTS}/")
        }
        if self.job.training.lora:
            merge_folder(weights, self.job.training.lora)
            known = {}
        self._check_fence()
        checkpoints.publish_candidate(self.job, step, weights, known)
        checkpoints.seal_save(save, hashes)
        write_atomic(save.parent / checkpoints.TRACKER, str(step))
        self._await_upload()  # do not prune files that are being uploaded
        checkpoints.prune(self.job)
        if self.mirror:
            self.upload = self.uploads.submit(self._push, self.mirror, save, step)

    def _check_fence(self) -> None:
        """Raise TrainingEnded if another host has taken this training over. A mirror that cannot be
        reached takes no save either.
        """
        try:
            check_fence(self.job)
        except TrainingEnded:
            raise
        except Exception as error:  # each kind of object store has its own
            faults.record(self.job.path, f"the fence in {self.job.mirror} was not read: {error}")

    def await_save(self) -> None:
        """Wait until the last save is complete and uploaded. Raises the error that prevents it.

        A failure of the upload is only recorded.
        """
        self.completing.wait()
        self._await_upload()

    def _push(self, mirror: Mirror, save: Path, step: int) -> None:
        """Upload the metrics, the candidates and the save, and prune the mirror.

        The metrics are uploaded as they are now, since verl keeps appending to them. They go first;
        otherwise a kill could leave a save in the mirror without the scores before it. If their
        upload fails, the save is uploaded all the same. The mirror is pruned only after the upload.
        Existing copies of the same name from an earlier attempt are replaced, because their weights
        are not the ones that this attempt scored.
        """
        check_fence(self.job)
        mirror.push_bytes(self.job.key.encode(), KEY)
        try:
            for path in sorted(self.job.path.glob("metrics-*.jsonl")):
                mirror.push_bytes(path.read_bytes(), path.name)
        finally:
            for candidate in candidates(self.job.path).values():
                if (
                    mirror.read(f"candidates/{candidate.name}/{MANIFEST}")
                    != (candidate / MANIFEST).read_bytes()
                ):
                    mirror.drop(f"candidates/{candidate.name}", MANIFEST)
                    mirror.push(candidate, f"candidates/{candidate.name}", MANIFEST)
            mirror.drop(f"saves/{save.name}", checkpoints.SEAL)
            mirror.push(save, f"saves/{save.name}", checkpoints.SEAL)
            checkpoints.prune_mirror(self.job, mirror)

    def _store_wandb_address(self) -> None:
        import wandb

        if wandb.run and not wandb.run.offline and wandb.run.url:
            write_atomic(self.job.path / WANDB_ADDRESS, wandb.run.url)

    def _await_upload(self) -> None:
        """Wait for the upload; record a failure as a fault and do not raise."""
        if self.upload and (error := self.upload.exception()):
            faults.record(
                self.job.path,
                (
                    f"a save or its metrics did not reach {self.job.mirror}: "
                    f"{type(error).__name__}: {error}; the local save is complete"
                ),
            )
        self.upload = None

    def _save_after_notice(self) -> None:
        """On a notice, make verl save after the current step.

        verl reads `save_freq` at the end of each step.
        """
        while not trainer_lease.notice(self.job.path):
            time.sleep(LISTEN_S)
        self.config.trainer.save_freq = 1
