"""Choose the Ray that a training of this profile runs on.

Also checks whether this machine has room for a training whose cluster is gone.
"""

from __future__ import annotations

from resources.capacity import check_machines, memory_gib
from resources.config.infrastructure import RayPlace
from resources.config.profile import Profile
from resources.home import Home, NotReady
from resources.ray.head import live_holders
from resources.ray.private import Joined, Private
from verl_jobs.job import TrainingJob
from verl_jobs.trainer.layout import rank_counts, with_layout


def ray_of(home: Home, profile: Profile, job: TrainingJob) -> Private | Joined:
    """Return this machine's own Ray, or the joined one with this machine's own as a fallback."""
    settings, folder = profile.ray, home.path / "ray"
    if not settings.address:
        return Private(folder, job, settings.bind)
    # the start model's folder has its shape
    started = profile.model_copy(update={"base": job.start})
    return Joined(
        settings.address,
        job,
        settings.patience_s,
        lambda: Private(folder, job, settings.bind, ranks_here(home, started)),
    )


def ranks_here(home: Home, profile: Profile) -> int:
    """Return the greatest number of ranks with which a training can continue on this machine.

    Raises NotReady with the numbers if the planner finds no room.
    """
    if not live_holders(home.path / "ray"):  # one that already continues here has its memory
        home.check_capacity(disk_gib=0.0, memory_gib=memory_gib(profile))
    refused = NotReady("no number of ranks of one node divides its batch")
    for ranks in rank_counts(profile.training):
        if training := with_layout(profile.training, ranks, 1):
            try:
                check_machines(profile.model_copy(update={"training": training, "ray": RayPlace()}))
                return ranks
            except NotReady as error:
                refused = error
    raise refused
