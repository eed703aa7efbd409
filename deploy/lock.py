"""Write the three lock files from pyproject.toml, for CPython 3.11 and 3.12. Run it with `make
lock`.

Resolves with a current pip and the public registry, first for 3.11 and then with the same versions
for 3.12; after that with this machine's own pip settings. Those must offer a `+cpu` wheel of torch
for 3.11 (a folder in PIP_FIND_LINKS, or PyTorch's own index in PIP_EXTRA_INDEX_URL). A package gets
the hashes of all these files. What only the registry's torch needs (CUDA, several GB) goes to
`requirements-cuda.lock`. `requirements-gpu.lock` is resolved separately, because vLLM wants other
versions of some packages: it is a complete environment.

Arguments: the interpreters, by default python3.11 and python3.12; `--keep` keeps the versions of
the present locks and adds only what they lack.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("cluster", "dev")
GPU_EXTRAS = (*EXTRAS, "gpu")
# For packages that are built from source, and for the editable install.
BUILD = ("setuptools", "wheel")
INTERPRETERS = ("python3.11", "python3.12")
HEAD = (
    "# Made by `make lock` from pyproject.toml, for CPython 3.11 and 3.12 on Linux x86-64. Install "
    "with --require-hashes --no-deps.\n"
)


@dataclass
class LockedPackage:
    """One package of a lock: its version without the local part, sha256 digests of its files, and
    the versions of Python that need it.
    """

    version: str
    digests: set[str] = field(default_factory=set)
    pythons: set[str] = field(default_factory=set)


Packages = dict[str, LockedPackage]


def direct_requirements(pyproject: Path, extras: tuple[str, ...] = EXTRAS) -> list[str]:
    """Return all direct requirements: of the runtime, of the extras and of the build."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    return [
        *project["dependencies"],
        *(line for extra in extras for line in project["optional-dependencies"][extra]),
        *BUILD,
    ]


def pins(lock: Path) -> dict[str, str]:
    """Return the versions of a lock by package name; none if the file does not exist."""
    text = lock.read_text(encoding="utf-8") if lock.exists() else ""
    return dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", text, re.MULTILINE))


def resolve(
    python: Path, requirements: list[str], versions: dict[str, str], environment: dict[str, str]
) -> Packages:
    """Return what pip of this interpreter would install, by normalised name. Installs nothing.

    versions: constraints. Raises subprocess.CalledProcessError if there is no resolution.
    """
    with tempfile.TemporaryDirectory() as folder:
        constraints, report = Path(folder) / "constraints.txt", Path(folder) / "report.json"
        constraints.write_text(
            "".join(f"{name}=={version}\n" for name, version in versions.items()), encoding="utf-8"
        )
        flags = ["-q", "--dry-run", "--ignore-installed", "--report", report, "-c", constraints]
        command = [python, "-m", "pip", "install", *flags, *requirements]
        subprocess.run(list(map(str, command)), env=environment, check=True)
        data = json.loads(report.read_text(encoding="utf-8"))
    release = data["environment"]["python_version"]
    return dict(_entry(item, release) for item in data["install"])


def _entry(item: dict[str, Any], release: str) -> tuple[str, LockedPackage]:
    name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()
    digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
    return name, LockedPackage(item["metadata"]["version"].split("+")[0], {digest}, {release})


def merge(packages: Packages, others: Packages) -> None:
    """Add the files and Python versions of `others`. Raises ValueError for another version."""
    for name, other in others.items():
        entry = packages.setdefault(name, LockedPackage(other.version))
        if entry.version != other.version:
            raise ValueError(f"{name} would be {entry.version} and {other.version}")
        entry.digests |= other.digests
        entry.pythons |= other.pythons


def resolve_all(
    pythons: list[Path],
    requirements: list[str],
    versions: dict[str, str],
    environment: dict[str, str],
) -> Packages:
    """Resolve for each interpreter, later ones with the versions of the earlier ones."""
    packages: Packages = {}
    for python in pythons:
        fixed = versions | {name: entry.version for name, entry in packages.items()}
        merge(packages, resolve(python, requirements, fixed, environment))
    return packages


def lock_text(packages: Packages) -> str:
    """Return the lock as requirements, sorted by name, without URLs: it works with any mirror."""
    releases = {release for entry in packages.values() for release in entry.pythons}
    return HEAD + "".join(
        f"{name}=={entry.version}{_marker(entry, releases)} \\\n"
        + " \\\n".join(f"    --hash=sha256:{digest}" for digest in sorted(entry.digests))
        + "\n"
        for name, entry in sorted(packages.items())
    )


def _marker(entry: LockedPackage, releases: set[str]) -> str:
    if entry.pythons == releases:
        return ""
    return "; " + " or ".join(f'python_version == "{release}"' for release in sorted(entry.pythons))


def main() -> None:
    keep = "--keep" in sys.argv
    interpreters = [name for name in sys.argv[1:] if name != "--keep"] or list(INTERPRETERS)
    base, cuda, gpu = (ROOT / f"requirements{part}.lock" for part in ("", "-cuda", "-gpu"))
    with tempfile.TemporaryDirectory() as folder:
        pythons = [_environment(Path(folder), name) for name in interpreters]
        for path, packages in zip(
            (base, cuda), for_cpus(pythons, pins(base) | pins(cuda) if keep else {}), strict=True
        ):
            _write(path, packages)
        requirements = direct_requirements(ROOT / "pyproject.toml", GPU_EXTRAS)
        versions = pins(gpu) if keep else {}
        _write(gpu, resolve_all(pythons, requirements, versions, public_environment()))


def for_cpus(pythons: list[Path], versions: dict[str, str]) -> tuple[Packages, Packages]:
    """Return the packages of every environment, and those of the registry's torch alone."""
    requirements = direct_requirements(ROOT / "pyproject.toml")
    public = resolve_all(pythons, requirements, versions, public_environment())
    versions = {name: entry.version for name, entry in public.items()}
    local = resolve(pythons[0], requirements, versions, dict(os.environ))
    if public["torch"].digests >= local["torch"].digests:
        sys.exit(
            "pip found no +cpu wheel of torch: set PIP_FIND_LINKS to a folder that has one, or "
            "PIP_EXTRA_INDEX_URL to PyTorch's cpu index"
        )
    first = local["torch"].pythons  # what only another Python needs is not one of CUDA
    only_cuda = {
        name: entry for name, entry in public.items() if name not in local and entry.pythons & first
    }
    merged = {name: entry for name, entry in public.items() if name not in only_cuda}
    merge(merged, local)
    return merged, only_cuda


def public_environment() -> dict[str, str]:
    """Return this environment without pip's settings, but for the certificates."""
    return {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("PIP_") or key == "PIP_CERT"
    } | {"PIP_CONFIG_FILE": os.devnull}


def _write(path: Path, packages: Packages) -> None:
    path.write_text(lock_text(packages), encoding="utf-8")
    print(f"{path.name}: {len(packages)} packages", flush=True)


def _environment(folder: Path, interpreter: str) -> Path:
    """Create an empty environment with a current pip; return its interpreter."""
    venv = folder / Path(interpreter).name
    subprocess.run([interpreter, "-m", "venv", venv], check=True)
    python = venv / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--upgrade", "pip"], check=True)
    return python


if __name__ == "__main__":
    main()
