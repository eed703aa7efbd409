"""Write `requirements.lock` and `requirements-cuda.lock` from pyproject.toml. Run it with `make
lock`.

Resolves twice with a current pip: from the public registry alone; then, with the same versions,
with this machine's own pip settings. Those must offer a `+cpu` wheel of torch (a folder in
PIP_FIND_LINKS, or PyTorch's own index in PIP_EXTRA_INDEX_URL). A package gets the hashes of both
files. What only the registry's torch needs (CUDA, several GB) goes to the second file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("cluster", "dev")
# For packages that are built from source, and for the editable install.
BUILD = ("setuptools", "wheel")
HEAD = (
    "# Made by `make lock` from pyproject.toml, for CPython 3.11 on Linux x86-64. Install with "
    "--require-hashes --no-deps.\n"
)


def direct_requirements(pyproject: Path) -> list[str]:
    """Return all direct requirements: of the runtime, of the extras and of the build."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    return [
        *project["dependencies"],
        *(line for extra in EXTRAS for line in project["optional-dependencies"][extra]),
        *BUILD,
    ]


def resolve(
    pip: Path, requirements: list[str], constraints: dict[str, str], environment: dict[str, str]
) -> dict[str, tuple[str, set[str]]]:
    """Return normalised name -> (version without local part, sha256 of the file that pip would
    install). Installs nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        constraints_path, report_path = (
            Path(folder) / "constraints.txt",
            Path(folder) / "report.json",
        )
        constraints_path.write_text(
            "".join(f"{name}=={version}\n" for name, version in constraints.items()),
            encoding="utf-8",
        )
        command = [
            pip,
            "-m",
            "pip",
            "install",
            "-q",
            "--dry-run",
            "--ignore-installed",
            "--report",
            report_path,
            "-c",
            constraints_path,
            *requirements,
        ]
        subprocess.run(list(map(str, command)), env=environment, check=True)
        items = json.loads(report_path.read_text(encoding="utf-8"))["install"]
    return dict(_entry(item) for item in items)


def _entry(item: dict[str, Any]) -> tuple[str, tuple[str, set[str]]]:
    name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()
    return name, (
        item["metadata"]["version"].split("+")[0],
        {item["download_info"]["archive_info"]["hashes"]["sha256"]},
    )


def lock_text(packages: dict[str, tuple[str, set[str]]]) -> str:
    """Return the lock as requirements, sorted by name, without URLs: it works with any mirror."""
    return HEAD + "".join(
        f"{name}=={version} \\\n"
        + " \\\n".join(f"    --hash=sha256:{digest}" for digest in sorted(digests))
        + "\n"
        for name, (version, digests) in sorted(packages.items())
    )


def main() -> None:
    requirements = direct_requirements(ROOT / "pyproject.toml")
    environment = dict(os.environ)
    public_environment = {
        key: value
        for key, value in environment.items()
        if not key.startswith("PIP_") or key == "PIP_CERT"
    } | {"PIP_CONFIG_FILE": os.devnull}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = Path(folder) / "bin" / "python"
        subprocess.run([pip, "-m", "pip", "install", "-q", "--upgrade", "pip"], check=True)
        public = resolve(pip, requirements, {}, public_environment)
        local = resolve(
            pip, requirements, {name: version for name, (version, _) in public.items()}, environment
        )
    if public["torch"] == local["torch"]:
        sys.exit(
            "pip found no +cpu wheel of torch: set PIP_FIND_LINKS to a folder that has one, or "
            "PIP_EXTRA_INDEX_URL to PyTorch's cpu index"
        )
    merged = {
        name: (version, digests | public[name][1]) for name, (version, digests) in local.items()
    }
    cuda = {name: entry for name, entry in public.items() if name not in local}
    (ROOT / "requirements.lock").write_text(lock_text(merged), encoding="utf-8")
    (ROOT / "requirements-cuda.lock").write_text(lock_text(cuda), encoding="utf-8")
    print(f"requirements.lock: {len(merged)} packages, requirements-cuda.lock: {len(cuda)}")


if __name__ == "__main__":
    main()
