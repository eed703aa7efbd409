"""Check before a training starts whether memory and GPUs suffice.

In: a profile. Out: the GiB that a run needs, or NotReady with the numbers. On a CPU the check
covers this machine's memory, with a GPU engine the memory of its GPUs. The formulas are the
planner's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from itertools import takewhile
from pathlib import Path

from resources.config.profile import Profile
from resources.home import NotReady
from resources.ray_gpus import RATES, gpus_of_ray
from verl_jobs.config.training import Training
from verl_jobs.planner.fit import check_fit, formulas_apply
from verl_jobs.planner.memory import cpu_phases
from verl_jobs.planner.shapes import GIB, GPUS, DoesNotFit, Gpu, ModelShape, shape_of

VISIBLE = "CUDA_VISIBLE_DEVICES"  # lists the GPUs that a process may use


def memory_gib(profile: Profile) -> float:
    """Return the memory that a run of this profile needs.

    This is the profile's figure, plus what its training takes beyond the default training, for
    which the figure was measured.
    """
    if profile.training.engine != "hf":
        return profile.needs.memory_gib
    default, shape = Profile(), shape_of_start(profile)
    default_shape = shape_of_start(default)
    if shape is None or default_shape is None:
        return profile.needs.memory_gib
    more = _peak(shape, profile.training) - _peak(default_shape, default.training)
    return profile.needs.memory_gib + max(0.0, more / GIB)


def _peak(shape: ModelShape, training: Training) -> float:
    """Return the bytes of the training's largest phase on a CPU."""
    return max(sum(phase.values()) for phase in cpu_phases(shape, training).values())


def shape_of_start(profile: Profile) -> ModelShape | None:
    """Return the shape of the start model; None for a hub model that is not known."""
    if profile.base:
        try:
            return shape_of(profile.base)
        except DoesNotFit:
            return None
    t = profile.tiny_model
    return ModelShape(
        name="the tiny model",
        hidden=t.hidden,
        layers=t.layers,
        heads=t.heads,
        kv_heads=max(1, t.heads // 2),
        intermediate=3 * t.hidden,
        vocabulary=t.vocabulary,
        tied=True,
    )


def check_machines(profile: Profile) -> None:
    """Raise NotReady if the training does not fit this machine.

    Either it is for several nodes and there is one, or its engine needs GPUs and this machine has
    none, too few, or too small ones.
    """
    training = profile.training
    if training.scale.nodes > 1 and not profile.ray.address:
        raise NotReady(
            f"training.scale.nodes is {training.scale.nodes}, this machine's own Ray has one "
            "node: set ray.address to a Ray that has them"
        )
    separate = training.scale.distillation or (
        training.scale.engine_gpus and training.engine != "hf"
    )
    if separate and not elsewhere(profile):
        raise NotReady(
            "training.scale: a separate engine and a teacher need GPUs besides the ranks', and "
            "this machine's own Ray has only the ranks': set ray.address to a Ray that has them"
        )
    gpu, shape = gpu_of(profile), shape_of_start(profile)
    if gpu is not None and shape is not None:
        try:
            check_fit(shape, gpu, training)
        except DoesNotFit as error:
            raise NotReady(str(error)) from error


def check_fetched(profile: Profile, folder: Path) -> str:
    """Repeat the check once the base model's folder is there, whose config.json has the shape.

    Returns the result of `not_checked`. Raises NotReady.
    """
    fetched = profile.model_copy(update={"base": str(folder)})
    # A machine without GPUs may prepare for another one that trains.
    if profile.training.engine != "hf" and not elsewhere(profile) and not gpus_here():
        return "Not checked whether this training fits: this machine has no GPU."
    check_machines(fetched)
    return not_checked(fetched)


def not_checked(profile: Profile) -> str:
    """Return in one line why the training's memory was not checked.

    Empty where the planner's formulas were applied.
    """
    place, on_gpus, unknown = (
        elsewhere(profile),
        profile.training.engine != "hf",
        shape_of_start(profile) is None,
    )
    scale = profile.training.scale
    if place and on_gpus and gpu_of(profile) and not unknown and formulas_apply(scale):
        return ""
    if place:
        why = f"the memory of {place} is unknown here"
        why += ": name the type of its GPUs in the profile's needs.gpu" if on_gpus else ""
    elif on_gpus and not formulas_apply(scale):
        why = "the planner supports only FSDP2 with trainer and engine on the same GPUs"
    elif on_gpus and _sliced():
        why = f"the memory of the slices of {VISIBLE} is unknown here"
    elif unknown and Path(profile.base).is_dir():
        why = f"{profile.base}/config.json is of a model type that the planner does not support"
    elif unknown:
        why = f"the shape of {profile.base!r} is unknown before it is downloaded; "
        why += "it is checked then" if on_gpus else "needs.memory_gib of the profile was used"
    else:
        return ""
    return f"Not checked whether this training fits: {why}."


def elsewhere(profile: Profile) -> str:
    """Return where the training runs, if that is not this machine; else ""."""
    return profile.ray.address or (
        "Kubernetes" if profile.orchestration.launcher == "kubernetes" else ""
    )


def gpu_of(profile: Profile) -> Gpu | None:
    """Return the smallest GPU that the training may get; None on a CPU, or if it is not known.

    On a joined Ray, one of those that its dashboard lists; it may add nodes later, so that their
    number is not checked. Where none is listed, the type that the profile names. Raises NotReady
    where this machine has too few GPUs.
    """
    training = profile.training
    if training.engine == "hf":
        return None
    if elsewhere(profile):
        listed = gpus_of_ray(profile.ray.address) if profile.ray.address else []
        return min(listed, key=lambda gpu: gpu.memory, default=GPUS.get(profile.needs.gpu))
    if _sliced():
        return None
    gpus = gpus_here()
    if len(gpus) < training.ranks:
        raise NotReady(
            f"training.engine {training.engine} with {training.ranks} ranks needs as many "
            f"GPUs, {_counted(len(gpus))}: use the profile "
            "embedded, or set ray.address to a Ray that has them"
        )
    return min(gpus, key=lambda gpu: gpu.memory)


def gpus_here() -> list[Gpu]:
    """Return the GPUs that `nvidia-smi` lists, less those that VISIBLE hides.

    An unknown GPU gets the rates of an A100, since only its memory matters here.
    """
    if not shutil.which("nvidia-smi"):
        return []
    command = [
        "nvidia-smi",
        "--query-gpu=index,uuid,name,memory.total",
        "--format=csv,noheader,nounits",
    ]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    gpus = list[Gpu]()
    for line in listed.splitlines():
        if line.count(",") != 3:  # a message that says why no GPU is listed
            continue
        index, uuid, name, mebibytes = map(str.strip, line.split(","))
        if _visible(index, uuid):
            gpus.append(Gpu(name, int(mebibytes) * 2**20, RATES.flops, RATES.bandwidth))
    return gpus


def _visible(index: str, uuid: str) -> bool:
    """Apply CUDA's rule for VISIBLE.

    It lists numbers or the first letters of ids, up to the first entry that is neither (-1, by
    custom).
    """
    if VISIBLE not in os.environ:
        return True
    named = map(str.strip, os.environ[VISIBLE].split(","))
    return any(
        each == index or (each.startswith("GPU-") and uuid.startswith(each))
        for each in takewhile(_names_a_gpu, named)
    )


def _names_a_gpu(name: str) -> bool:
    return name.isdigit() or name.startswith(("GPU-", "MIG-"))


def _sliced() -> bool:
    """Return whether this process is to use slices of GPUs (MIG)."""
    return "MIG-" in os.environ.get(VISIBLE, "")


def _counted(gpus: int) -> str:
    return f"nvidia-smi lists {gpus}" + (
        f" of those that {VISIBLE}={os.environ[VISIBLE]} names" if VISIBLE in os.environ else ""
    )
