"""Fence of a training: a save counts only from the host that holds the training lease.

A file in the training's folder has the token of the lease under which this host trains. The same
file in the mirror has the token of the last host that trained. A host that was suspended, and whose
training another one took over, finds a higher token there than its own: it saves nothing more.
"""

from __future__ import annotations

from pathlib import Path

from artifacts.atomic import write_atomic
from verl_jobs.job import TrainingJob
from verl_jobs.trainer.remote_checkpoints import Mirror
from verl_jobs.trainer.trainer_lease import TrainingEnded

FENCE = "fence"
REVOKED = -1


def raise_fence(job: TrainingJob, token: int) -> None:
    """Train under this token from now on. Raises TrainingEnded if a later one trains already.

    token: of the lease; a higher one is later.
    """
    write_atomic(job.path / FENCE, str(token))
    if job.mirror:
        check_fence(job)
        Mirror(job.mirror).push_bytes(str(token).encode(), FENCE)


def revoke(folder: Path) -> None:
    """Refuse all further saves of the training in this folder, whose lease is lost."""
    if folder.is_dir():
        write_atomic(folder / FENCE, str(REVOKED))


def check_fence(job: TrainingJob) -> None:
    """Raise TrainingEnded if another host trains this job by now. Without a lease there is no
    fence. Raises the file system's error if the mirror cannot be reached.
    """
    file = job.path / FENCE
    if not file.exists():
        return
    own = int(file.read_text(encoding="utf-8"))
    latest = int((job.mirror and Mirror(job.mirror).read(FENCE)) or own)
    if own == REVOKED or latest > own:
        raise TrainingEnded(
            f"{job.run_id} is not saved: another process has taken the training lease over"
        )
