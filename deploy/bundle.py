"""Carry an environment to a host without a network. Standard library only.

    python deploy/bundle.py environment VENV --torch 2.11.0 --vllm 0.24.0
    python deploy/bundle.py make FOLDER --environment VENV
    python FOLDER/bundle.py install FOLDER --to VENV --clone .  on the host, with its own python

`environment` installs Ratchet and what it needs, with a given torch and vLLM. `make` packs the
packages of an environment, and other files (`--add`: a base model, problems), into parts of a
chosen size, with a checksum each. `--host-torch` leaves torch and CUDA's libraries to the host, and
`install` takes the torch that is there if its version fits. `--arch sm_90` leaves out GPU code of
other architectures, which is most of vLLM's size. Run the first two with the host's version of
Python.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

INDEX, PART = "bundle.json", "part-{:03d}"
TORCH = ("torch", "torchgen", "functorch", "triton", "torchvision", "torchaudio", "nvidia")
# parts of packages that no training uses
UNUSED = ("ray/jars", "ray/rllib", "mlflow/server/js", "pip")
FATBIN, CUBIN = 0xBA55ED50, 2


class Parts(io.RawIOBase):
    """A stream that is written to numbered files of at most `size` bytes."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        self.digests: list[str] = []
        self.buffer = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.buffer += data
        while len(self.buffer) >= self.size:
            self._write_part()
        return len(data)

    def finish(self) -> None:
        if self.buffer:
            self._write_part()

    def _write_part(self) -> None:
        part, self.buffer = bytes(self.buffer[: self.size]), self.buffer[self.size :]
        (self.folder / PART.format(len(self.digests))).write_bytes(part)
        self.digests.append(hashlib.sha256(part).hexdigest())


class JoinedParts(io.RawIOBase):
    """The stream of the parts. Raises SystemExit for a part that is missing or damaged."""

    def __init__(self, folder: Path, digests: Sequence[str]) -> None:
        self.folder, self.digests = folder, list(digests)
        self.number, self.part = 0, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self.part and self.number < len(self.digests):
            path = self.folder / PART.format(self.number)
            if not path.is_file():
                sys.exit(f"{path} is missing: copy all {len(self.digests)} parts to the folder")
            data = path.read_bytes()
            if hashlib.sha256(data).hexdigest() != self.digests[self.number]:
                sys.exit(f"{path} is damaged: copy it again")
            self.part, self.number = memoryview(data), self.number + 1
        taken = min(len(buffer), len(self.part))
        buffer[:taken], self.part = self.part[:taken], self.part[taken:]
        return taken


def environment(venv: Path, torch: str, vllm: str) -> None:
    """Create an environment with Ratchet's requirements, but with these versions. Its locks are
    not used: they are for one version of torch.
    """
    clone = Path(__file__).resolve().parent.parent
    project = tomllib.loads((clone / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [each for each in project["dependencies"] if not each.startswith("torch==")]
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install"]
    subprocess.run([*pip, *wanted, f"torch=={torch}", f"vllm=={vllm}"], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-e", str(clone)], check=True)


def make(
    folder: Path, venv: Path, arch: int, part_mib: float, without: Sequence[str], add: Sequence[str]
) -> None:
    """Pack the packages of an environment, and other files.

    arch: keep GPU code of this compute capability only (90 for sm_90); 0 keeps all. without: names
    in site-packages to leave out. add: FILE=NAME or FILE; `install` puts it into VENV/files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("part-*"), folder / INDEX]:
        old.unlink(missing_ok=True)
    site = next(venv.glob("lib/python3.*/site-packages"))
    version = subprocess.run(
        [venv / "bin" / "python", "-c", "import torch; print(torch.__version__)"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    parts = Parts(folder, int(part_mib * 2**20))
    with tarfile.open(fileobj=parts, mode="w|xz") as archive:
        for path in packed(site, without):
            name = f"site/{path.relative_to(site)}"
            content = only(path.read_bytes(), arch) if arch and path.suffix == ".so" else None
            _add(archive, path, name, content)
        for path in programs(venv / "bin"):
            _add(archive, path, f"bin/{path.name}", None)
        for each in add:
            file, _, name = each.partition("=")
            _add(archive, Path(file), f"files/{name or Path(file).name}", None)
    parts.finish()
    index = {
        "python": site.parent.name,
        "torch": version,
        "brings_torch": (site / "torch").exists() and "torch" not in without,
        "arch": arch,
        "parts": parts.digests,
    }
    (folder / INDEX).write_text(json.dumps(index, indent=1), encoding="utf-8")
    shutil.copy2(__file__, folder / "bundle.py")
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{len(parts.digests)} parts, {size / 2**20:.0f} MiB in {folder}")


def packed(site: Path, without: Sequence[str]) -> Iterator[Path]:
    """Yield the files of an environment's packages that a training uses."""
    left_out = {str(site / each) for each in (*UNUSED, *without)}
    for folder, folders, names in os.walk(site):
        folders[:] = sorted(
            each for each in folders if each != "__pycache__" and f"{folder}/{each}" not in left_out
        )
        for name in sorted(names):
            # the editable install of the clone: a place of this machine
            ours = name.startswith("__editable__") or name == "direct_url.json"
            if not ours and not name.endswith(".pyc") and f"{folder}/{name}" not in left_out:
                yield Path(folder, name)


def programs(folder: Path) -> Iterator[Path]:
    """Yield the binaries that packages start, such as ruff; scripts name this machine's python."""
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def only(library: bytes, arch: int) -> bytes:
    """Return a library whose GPU code for other architectures is zeros, which take no space in an
    archive. Where a kernel has no code for this one, its PTX stays, which the driver compiles.

    Format: CUDA's fatbinary, a header of 16 bytes and entries of code with a header each, as
    `cuobjdump` reads it.
    """
    data, at = bytearray(library), 0
    while (at := data.find(struct.pack("<I", FATBIN), at)) >= 0:
        _, version, header, size = struct.unpack_from("<IHHQ", data, at)
        if (version, header) != (1, 16) or at + 16 + size > len(data):
            at += 4
            continue
        entries, end, place = [], at + 16 + size, at + 16
        while place + 32 <= end:
            kind, _, head, length = struct.unpack_from("<HHIQ", data, place)
            (capability,) = struct.unpack_from("<I", data, place + 28)
            entries.append((kind, capability, place + head, length))
            place += head + length
        native = any(kind == CUBIN and capability == arch for kind, capability, _, _ in entries)
        for kind, capability, start, length in entries:
            keep = capability == arch and kind == CUBIN if native else kind != CUBIN
            if not keep:
                data[start : start + length] = bytes(length)
        at = end
    return bytes(data)


def _add(archive: tarfile.TarFile, path: Path, name: str, content: bytes | None) -> None:
    member = archive.gettarinfo(path, name)
    if not member.isreg():  # a hard link in the environment
        member.type, member.size = tarfile.REGTYPE, path.stat().st_size
    with path.open("rb") if content is None else io.BytesIO(content) as file:
        archive.addfile(member, file)


def install(folder: Path, venv: Path, clone: Path) -> None:
    """Make an environment from the parts, with the packages of this interpreter behind them, and
    with `ratchet` from a clone. Raises SystemExit with the reason if it cannot be made.
    """
    index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    ours = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if ours != index["python"]:
        sys.exit(f"the bundle is for {index['python']}, this is {ours}: run it with that one")
    host = [Path(each) for each in sys.path if each.endswith("site-packages")]
    torch = _host_torch() if not index["brings_torch"] else ""
    if not index["brings_torch"] and _release(torch) != _release(index["torch"]):
        sys.exit(
            f"the bundle needs the host's torch {index['torch']}, found {torch or 'none'}: make "
            "the bundle for that version, or without --host-torch"
        )
    site = venv / "lib" / ours / "site-packages"
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", venv], check=True)
    with tarfile.open(
        fileobj=io.BufferedReader(JoinedParts(folder, index["parts"])), mode="r|xz"
    ) as a:
        _extract(a, {"site": site, "bin": venv / "bin", "files": venv / "files"})
    (site / "ratchet.pth").write_text(f"{clone.resolve()}\n", encoding="utf-8")
    if torch:
        paths = "".join(f"{each}\n" for each in host if each != site)
        (site / "zz-host.pth").write_text(paths, encoding="utf-8")
    program = venv / "bin" / "ratchet"
    program.write_text(
        f"#!{venv.resolve()}/bin/python\nimport sys\nfrom cli.main import main\nsys.exit(main())\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    print(f"{venv}: torch {torch + ' of this host' if torch else index['torch']}")


def _extract(archive: tarfile.TarFile, folders: dict[str, Path]) -> None:
    for member in archive:
        top, _, rest = member.name.partition("/")
        member.name = rest
        archive.extract(member, folders[top], filter="data")


def _host_torch() -> str:
    run = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.__version__)"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return run.stdout.strip()


def _release(version: str) -> str:
    return version.partition("+")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    creator = commands.add_parser("environment")
    creator.add_argument("venv", type=Path)
    creator.add_argument("--torch", required=True)
    creator.add_argument("--vllm", required=True)
    maker = commands.add_parser("make")
    maker.add_argument("folder", type=Path)
    maker.add_argument("--environment", type=Path, default=Path(".venv"))
    maker.add_argument("--arch", default="", help="keep GPU code of one architecture: sm_90")
    maker.add_argument("--part-mib", type=float, default=1024.0)
    maker.add_argument("--host-torch", action="store_true", help="use the host's torch and CUDA")
    maker.add_argument("--without", nargs="*", default=[], help="names in site-packages")
    maker.add_argument("--add", nargs="*", default=[], help="other files: FILE or FILE=NAME")
    installer = commands.add_parser("install")
    installer.add_argument("folder", type=Path)
    installer.add_argument("--to", type=Path, default=Path(".venv"))
    installer.add_argument("--clone", type=Path, default=Path())
    given = parser.parse_args()
    if given.command == "environment":
        environment(given.venv, given.torch, given.vllm)
    elif given.command == "make":
        without = [*given.without, *(TORCH if given.host_torch else ())]
        arch = int(given.arch.removeprefix("sm_") or 0)
        make(given.folder, given.environment, arch, given.part_mib, without, given.add)
    else:
        install(given.folder, given.to, given.clone)


if __name__ == "__main__":
    main()
