"""What this machine has for a training, what is missing, and how to get it.

In: the home and a profile. Out: findings, one for each part; nothing is changed, and no network is
used. `ratchet doctor` prints them.
"""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from resources.capacity import check_machines, gpus_here, memory_gib
from resources.config.profile import Profile
from resources.finding import Finding
from resources.home import Home, NotReady, available_memory_gib
from sandbox.backends.local import IsolationError
from sandbox.cores import usable_cores
from sandbox.sandbox import Sandbox, SandboxConfig, SandboxError
from verl_jobs.config.training import Training
from verl_jobs.planner.engine import import_fault
from verl_jobs.planner.shapes import GIB

SHARED_GIB = 8.0  # of /dev/shm on a GPU host: NCCL between ranks, and Ray's objects
ATTENTION = "flash-attn"  # the package of flash_attention_2, verl's default
# its module that flash-attn-4, which SGLang requires, does not have
ATTENTION_MODULE = "flash_attn.flash_attn_interface"


def findings(home: Home, profile: Profile) -> Iterator[Finding]:
    """Yield a finding for each part that a training of this profile uses."""
    on_gpus = profile.training.engine != "hf"
    yield from _packages(profile.training)
    yield from _gpus(on_gpus)
    yield from _memory(home, profile, on_gpus)
    yield from _isolation(profile)
    yield _layout(profile)


def _packages(training: Training) -> Iterator[Finding]:
    engine = training.engine
    names = ["verl", "torch", "transformers", "ray"]
    names += [engine] if engine not in ("hf", *names) else []
    versions = {name: _version(name) for name in names}
    yield Finding(
        "packages", ", ".join(f"{name} {version or '-'}" for name, version in versions.items())
    )
    if engine == "hf":
        return
    fault = import_fault(engine)
    yield Finding(
        "engine",
        fault or f"{engine} {versions[engine]} can be imported",
        f"install {engine} in this environment, built for this torch" if fault else "",
        blocks=bool(fault),
    )
    fault = import_fault(ATTENTION_MODULE)
    parallel = training.scale.sequence_parallel
    yield Finding(
        "attention kernels",
        f"torch's own ({fault})" if fault else f"{ATTENTION} {_version(ATTENTION)}",
        "install flash-attn for faster updates"
        + (f", or set training.scale.sequence_parallel=1 (now {parallel})" if parallel > 1 else "")
        if fault
        else "",
        blocks=bool(fault) and parallel > 1,
    )


def _gpus(needed: bool) -> Iterator[Finding]:
    gpus = gpus_here()
    names = ", ".join(f"{gpu.name} ({gpu.memory / GIB:.0f} GiB)" for gpu in gpus)
    driver = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    lacks = "install NVIDIA's driver, or start the container with --gpus all"
    yield Finding(
        "driver", driver or "none", lacks if needed and not driver else "", needed and not driver
    )
    yield Finding("GPUs", names or "none", "", blocks=needed and not gpus)
    if needed or gpus:
        cuda = _python("import torch as t; print(t.version.cuda or 'none', t.cuda.is_available())")
        usable = cuda.endswith("True")
        yield Finding(
            "CUDA in torch",
            cuda.replace(" True", ", usable").replace(" False", ", not usable"),
            "" if usable else "install a build of torch with CUDA that this driver supports",
            blocks=needed and not usable,
        )


def _memory(home: Home, profile: Profile, on_gpus: bool) -> Iterator[Finding]:
    needed, available = memory_gib(profile), available_memory_gib()
    yield Finding(
        "memory",
        f"{available:.1f} GiB available, {needed:.1f} needed, {usable_cores()} cores",
        "" if available >= needed else "close other programs, or use a smaller profile",
        blocks=available < needed,
    )
    disk = shutil.disk_usage(_existing(home.path)).free / GIB
    yield Finding(
        "disk",
        f"{disk:.0f} GiB free under {home.path}, {profile.needs.disk_gib:g} needed",
        "" if disk >= profile.needs.disk_gib else "free some, or set RATCHET_HOME to another disk",
        blocks=disk < profile.needs.disk_gib,
    )
    shared = shutil.disk_usage("/dev/shm").free / GIB if Path("/dev/shm").is_dir() else 0.0
    small = on_gpus and shared < SHARED_GIB
    yield Finding(
        "shared memory",
        f"{shared:.1f} GiB free in /dev/shm",
        f"start the container with --shm-size={SHARED_GIB:.0f}g, or mount /dev/shm larger"
        if small
        else "",
    )


def _isolation(profile: Profile) -> Iterator[Finding]:
    """Open a sandbox with one worker: it takes the highest level that this machine permits."""
    try:
        with Sandbox(SandboxConfig(workers=1, isolation=profile.sandbox.isolation)) as sandbox:
            level = sandbox.describe()
    except (IsolationError, SandboxError) as error:
        yield Finding("isolation", str(error), "set sandbox.isolation: auto", blocks=True)
        return
    bare = level.startswith("bare")
    yield Finding(
        "isolation",
        level,
        "run as root, or permit user namespaces: sysctl kernel.unprivileged_userns_clone=1 and "
        "kernel.apparmor_restrict_unprivileged_userns=0"
        if bare
        else "",
    )
    namespaces = _read("/proc/sys/user/max_user_namespaces")
    yield Finding("user namespaces", f"at most {namespaces}" if namespaces else "not in the kernel")
    grouped = "cgroup" in level.partition(": ")[2]
    yield Finding(
        "cgroups",
        "limit memory and processes" if grouped else "not available to this user",
        ""
        if grouped
        else "start it in a unit of its own: systemd-run --user --scope -p Delegate=yes ratchet …",
    )


def _layout(profile: Profile) -> Finding:
    """Say whether the profile's training fits the GPUs that are there."""
    try:
        check_machines(profile)
    except NotReady as error:
        return Finding("layout", str(error), blocks=True)
    return Finding("layout", "no fault found")


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _output(*command: str) -> str:
    """Return the first line that a command prints; empty if it fails or is not there."""
    if not shutil.which(command[0]):
        return ""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.stdout.strip().partition("\n")[0] if run.returncode == 0 else ""


@cache
def _python(program: str) -> str:
    return _output(sys.executable, "-c", program)


def _read(path: str) -> str:
    return Path(path).read_text(encoding="ascii").strip() if Path(path).exists() else ""


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)
