"""The passport of an artifact: its inputs, code, packages, seed and machine."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from artifacts import distribution

PACKAGES = (
    "verl",
    "ray",
    "torch",
    "transformers",
    "dagster",
    "numpy",
    "tokenizers",
    "mlflow",
    "TransferQueue",
    "tensordict",
    "rensa",
    "detect-secrets",
    "phonenumbers",
)


class Manifest(BaseModel):
    """The record of an artifact: its inputs, its content, and how it was made.

    `key` names the inputs (a memo: same key, same work), `content_hash` the output.
    """

    model_config = ConfigDict(frozen=True)

    kind: str  # datasets, checkpoints, scores, reports
    name: str  # the stage, or the checkpoint's name
    key: str
    content_hash: str
    files: dict[str, str] = {}  # relative name of each file -> its sha256
    inputs: dict[str, str] = {}  # name of each input -> its content hash
    config: dict[str, Any] = {}
    seed: int | None = None
    facts: dict[str, Any] = {}  # counts and figures worth showing
    code: str = ""  # hash of the code of the stage that made it
    isolation: str | None = None  # the sandbox's isolation level, if verdicts were involved
    code_version: str = ""
    packages: dict[str, str] = {}
    hardware: dict[str, Any] = {}
    created_at: str = ""

    def stamped(self) -> Manifest:
        """Return a copy with code version, package versions, hardware and time filled in."""
        return self.model_copy(
            update={
                "code_version": code_version(),
                "packages": package_versions(),
                "hardware": hardware(),
                "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        )


@cache
def code_version() -> str:
    """Return the installed version and, in a clone, the commit, marked if the tree differs."""
    version = distribution.version()
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return version
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{version}+{git.stdout.strip()}" if git.returncode == 0 else version


@cache
def package_versions() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


@cache
def hardware() -> dict[str, Any]:
    models = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages / 2**30, 1),
    }
