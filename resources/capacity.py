"""Whether a training has room before it starts: this machine's memory on a CPU, its GPUs' memory with an engine of theirs.

In: a profile. Out: the GiB that a run needs, or NotReady with the numbers. The formulas are the planner's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from itertools import takewhile
from pathlib import Path

from resources.config.profile import Profile
from resources.home import NotReady
from verl_jobs.planner.fit import check_fit, planned
from verl_jobs.planner.memory import cpu_phases
from verl_jobs.planner.shapes import GIB, GPUS, DoesNotFit, Gpu, Shape, shape_of

VISIBLE = "CUDA_VISIBLE_DEVICES"  # which of its GPUs a person lets a process have


def memory_gib(profile: Profile) -> float:
    """What the profile says, and what its training takes beyond the default one, for which that was measured."""
    if profile.training.engine != "hf":
        return profile.needs.memory_gib
    default, shape = Profile(), shape_of_start(profile)
    usual = shape_of_start(default)
    if shape is None or usual is None:
        return profile.needs.memory_gib
    more = max(sum(phase.values()) for phase in cpu_phases(shape, profile.training).values())
    less = max(sum(phase.values()) for phase in cpu_phases(usual, default.training).values())
    return profile.needs.memory_gib + max(0.0, (more - less) / GIB)


def shape_of_start(profile: Profile) -> Shape | None:
    """Of the model that training starts from; None where it is a hub model that is not known."""
    if profile.base:
        try:
            return shape_of(profile.base)
        except DoesNotFit:
            return None
    t = profile.tiny_model
    return Shape(
        "the tiny model",
        t.hidden,
        t.layers,
        t.heads,
        max(1, t.heads // 2),
        3 * t.hidden,
        t.vocabulary,
        True,
    )


def check_machines(profile: Profile) -> None:
    """Raises NotReady where the training is for several nodes and there is one, or its engine wants GPUs and this machine, on which it would run, has
    none, too few, or too small ones."""
    training = profile.training
    if training.scale.nodes > 1 and not profile.ray.address:
        raise NotReady(
            f"training.scale.nodes {training.scale.nodes}: a Ray of this machine's own has one node: give ray.address, a Ray that has them"
        )
    if (training.scale.engine_gpus or training.scale.distillation) and not elsewhere(profile):
        raise NotReady(
            "training.scale: an engine apart and a teacher take GPUs beside the ranks', and a Ray of this machine's own has the ranks' alone: give "
            "ray.address, a Ray that has them"
        )
    gpu, shape = gpu_of(profile), shape_of_start(profile)
    if gpu is not None and shape is not None:
        try:
            check_fit(shape, gpu, training)
        except DoesNotFit as error:
            raise NotReady(str(error)) from error


def check_fetched(profile: Profile, folder: Path) -> str:
    """The same question once the base model's folder is there, whose config.json has the shape. Returns `unasked`. Raises NotReady."""
    fetched = profile.model_copy(update={"base": str(folder)})
    if (
        profile.training.engine != "hf" and not elsewhere(profile) and not gpus_here()
    ):  # a machine that prepares, for another that trains
        return "Whether this training fits was not asked: this machine has no GPU."
    check_machines(fetched)
    return unasked(fetched)


def unasked(profile: Profile) -> str:
    """Why nobody has asked whether this training's memory suffices, as one line; empty where the planner's formulas were."""
    place, on_gpus, unknown = (
        elsewhere(profile),
        profile.training.engine != "hf",
        shape_of_start(profile) is None,
    )
    if place:
        why = f"what {place} has is not known here"
        why += (
            ": `ratchet plan --gpus 8xH100` with this profile answers for GPUs that you name"
            if on_gpus
            else ""
        )
    elif on_gpus and not planned(profile.training.scale):
        why = (
            "the planner knows FSDP2 with trainer and engine on the same GPUs, and not this layout"
        )
    elif on_gpus and _sliced():
        why = f"how much memory the slices of {VISIBLE} have is not known here"
    elif unknown and Path(profile.base).is_dir():
        why = f"{profile.base}/config.json is of no kind that the planner knows"
    elif unknown:
        why = f"no shape is known of {profile.base!r} before it is fetched; "
        why += (
            "it is asked then" if on_gpus else "needs.memory_gib of the profile was taken as it is"
        )
    else:
        return ""
    return f"Whether this training fits was not asked: {why}."


def elsewhere(profile: Profile) -> str:
    """Where it trains, if that is not this machine."""
    return profile.ray.address or (
        "Kubernetes" if profile.orchestration.launcher == "kubernetes" else ""
    )


def gpu_of(profile: Profile) -> Gpu | None:
    """The smallest GPU of this machine where it trains on them; None on a CPU, or elsewhere. Raises NotReady where there are too few."""
    training = profile.training
    if training.engine == "hf" or elsewhere(profile) or _sliced():
        return None
    found = gpus_here()
    if len(found) < training.ranks:
        raise NotReady(
            f"training.engine {training.engine} with {training.ranks} ranks needs as many GPUs, {_counted(len(found))}: take the profile "
            "embedded, or submit to a Ray that has them (ray.address)"
        )
    return min(found, key=lambda gpu: gpu.memory)


def gpus_here() -> list[Gpu]:
    """As `nvidia-smi` lists them, less those that VISIBLE hides; rates of one that is not known are an A100's, since only its memory counts here."""
    if not shutil.which("nvidia-smi"):
        return []
    command = [
        "nvidia-smi",
        "--query-gpu=index,uuid,name,memory.total",
        "--format=csv,noheader,nounits",
    ]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    usual, found = GPUS["A100-80"], []
    for line in listed.splitlines():
        if line.count(",") != 3:  # it says why it lists none
            continue
        index, uuid, name, mebibytes = map(str.strip, line.split(","))
        if _visible(index, uuid):
            found.append(Gpu(name, int(mebibytes) * 2**20, usual.flops, usual.bandwidth))
    return found


def _visible(index: str, uuid: str) -> bool:
    """By CUDA's rule: numbers or the first letters of ids, up to the first that is neither (-1, by custom)."""
    if VISIBLE not in os.environ:
        return True
    named = map(str.strip, os.environ[VISIBLE].split(","))
    return any(
        each == index or (each.startswith("GPU-") and uuid.startswith(each))
        for each in takewhile(_names_a_gpu, named)
    )


def _names_a_gpu(told: str) -> bool:
    return told.isdigit() or told.startswith(("GPU-", "MIG-"))


def _sliced() -> bool:
    """Whether slices of GPUs (MIG) are what this process is to use."""
    return "MIG-" in os.environ.get(VISIBLE, "")


def _counted(gpus: int) -> str:
    return f"nvidia-smi lists {gpus}" + (
        f" of those that {VISIBLE}={os.environ[VISIBLE]} names" if VISIBLE in os.environ else ""
    )
