"""Make `.venv/` from a lock, with `ratchet` in its `bin`. Standard library only; the Makefile
runs it with Python 3.11 or 3.12 on Linux x86-64.

Arguments: `gpu` installs requirements-gpu.lock (vLLM, torch with CUDA) instead; without it, an
existing environment keeps its kind. A path names another folder than `.venv`. Where there is no
pyproject.toml, only the packages are installed: the image's layer that a change of the code keeps.

A stamp in the environment holds the hashes of its inputs. If they are equal, there is nothing to
do. After a change of the lock, a moved clone or a killed install the environment is created again:
pip does not install atomically, and a partial environment cannot be repaired safely. A folder
without a stamp is another program's, and is not cleared.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

LOCKS = ("requirements.lock", "requirements-cuda.lock")
GPU_LOCK = "requirements-gpu.lock"
BUILD = ("setuptools", "wheel")
STAMP = "stamp.json"
# in a new environment, and among its packages
BARE = {"bin", "include", "lib", "lib64", "pyvenv.cfg", ".gitignore"}
BARE_PACKAGES = {"pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils"}
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input")
HASHED = ("install", "--no-deps", "--require-hashes")


def stamp(root: Path, gpu: bool = False) -> dict[str, str]:
    """Return the hashes of an environment's inputs: of the packages (locks, interpreter, place),
    and of the settings with which Ratchet itself is installed.
    """
    names = (GPU_LOCK,) if gpu else LOCKS
    locks = [(root / name).read_text(encoding="utf-8") for name in names]
    ours: list[Any] = []
    if (file := root / "pyproject.toml").exists():
        pyproject = tomllib.loads(file.read_text(encoding="utf-8"))
        ours = [pyproject["build-system"], pyproject["project"], pyproject["tool"]["setuptools"]]
    packages = _hash([str(root), sys.version, *locks])
    return {"packages": packages, "ours": _hash(ours), "kind": "gpu" if gpu else "cpu"}


def foreign(venv: Path) -> bool:
    """Return whether a folder holds what this program did not put there, so it must not be cleared.

    A killed install leaves a bare environment, or one with a stamp.
    """
    if not venv.is_dir() or (venv / STAMP).exists():
        return False
    names = {path.name for path in venv.iterdir()}
    packages = {path.name.partition("-")[0] for path in venv.glob("lib/python*/site-packages/*")}
    return bool(names - BARE or packages - BARE_PACKAGES)


def _hash(data: object) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


def pinned(lock: Path, names: tuple[str, ...]) -> str:
    """Return the lines of the lock that pin these packages."""
    entries = re.findall(r"^\S+==(?:.*\\\n)*.*\n", lock.read_text(encoding="utf-8"), re.MULTILINE)
    return "".join(entry for entry in entries if entry.split("==")[0] in names)


def install_packages(root: Path, venv: Path, gpu: bool = False) -> None:
    """Create an environment with all locked packages. Raises subprocess.CalledProcessError at pip's
    first failure.
    """
    python, log = venv / "bin" / "python", venv / "install.log"
    lock = root / (GPU_LOCK if gpu else LOCKS[0])
    subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
    write_stamp(venv, {"kind": "gpu" if gpu else "cpu"})
    # the build tools first: packages that come as source, and Ratchet itself, are built with pinned
    # tools
    (venv / "build.lock").write_text(pinned(lock, BUILD), encoding="utf-8")
    _pip(python, log, *HASHED, "-r", venv / "build.lock")
    if gpu:
        # it has only the hash of the registry's torch, so pip ignores a +cpu build
        _pip(python, log, *HASHED, "--no-build-isolation", "-r", lock)
    else:
        _install_with_torch(root, venv)


def _install_with_torch(root: Path, venv: Path) -> None:
    """Install the lock with the build of torch that pip's settings offer: +cpu, or CUDA."""
    python, log = venv / "bin" / "python", venv / "install.log"
    (venv / "torch.lock").write_text(pinned(root / LOCKS[0], ("torch",)), encoding="utf-8")
    # torch separately: with required hashes, pip 23 to 26 ignores a +cpu wheel in a plain folder of
    # links, because it cannot know its hash beforehand
    with tempfile.TemporaryDirectory(dir=venv) as wheels:
        _pip(
            python,
            log,
            "download",
            "--no-deps",
            "-d",
            wheels,
            pinned(root / LOCKS[0], ("torch",)).split()[0].rstrip(";"),
        )
        _pip(python, log, *HASHED, "--no-index", "--find-links", wheels, "-r", venv / "torch.lock")
    _pip(python, log, *HASHED, "--no-build-isolation", "-r", root / LOCKS[0])
    torch_version = subprocess.run(
        [python, "-c", "import importlib.metadata as m; print(m.version('torch'))"],
        check=True,
        capture_output=True,
        text=True,
    )
    if "+cpu" not in torch_version.stdout:
        _pip(python, log, *HASHED, "-r", root / LOCKS[1])


def write_stamp(venv: Path, stamp: dict[str, str]) -> None:
    """Write what is installed so far. After a failure the kind and whole packages are kept."""
    beside = venv / "stamp.beside"
    beside.write_text(json.dumps(stamp), encoding="utf-8")
    beside.rename(venv / STAMP)


def install_ours(root: Path, venv: Path) -> None:
    """Install the clone itself, editable. Raises like install_packages."""
    _pip(
        venv / "bin" / "python",
        venv / "install.log",
        "install",
        "--no-deps",
        "--no-build-isolation",
        "-e",
        root,
    )


def _pip(python: Path, log: Path, *arguments: str | Path) -> None:
    """Run pip with its output in `log`; a terminal shows a count of the packages."""
    collected = 0
    with log.open("a", encoding="utf-8") as file:
        pip = subprocess.Popen(
            [python, *PIP, arguments[0], "--progress-bar", "off", *arguments[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert pip.stdout is not None
        for line in pip.stdout:
            file.write(line)
            if line.startswith("Collecting ") and sys.stdout.isatty():
                collected += 1
                print(f"\r  {collected} packages \033[K", end="", flush=True)
            elif line.startswith("Installing collected") and sys.stdout.isatty():
                print("\r  unpacking \033[K", end="", flush=True)
    if pip.wait():
        raise subprocess.CalledProcessError(pip.returncode, pip.args)


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument != "gpu"]
    root = Path.cwd()
    venv = root / (arguments[0] if arguments else ".venv")
    if venv.is_symlink() or foreign(venv):
        print(
            f"{venv} is a link, or holds other files or another program's environment, which would "
            "be cleared: move it away or delete it, and run make again",
            file=sys.stderr,
        )
        return 1
    with (root / LOCKS[0]).open() as lock:
        # With two `make` at once, the second waits and then finds the stamp.
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp_path = venv / STAMP
        installed = (
            json.loads(stamp_path.read_text(encoding="utf-8")) if stamp_path.exists() else {}
        )
        gpu = "gpu" in sys.argv[1:] or installed.get("kind") == "gpu"
        expected = stamp(root, gpu)
        if installed == expected:
            return 0
        os.environ.pop("PYTHONPATH", None)
        try:
            if installed.get("packages") != expected["packages"]:
                name, disk = (GPU_LOCK, "16 GB") if gpu else (LOCKS[0], "3 GB (7 GB with CUDA)")
                print(
                    f"Creating {venv.name} from {name}, once: takes minutes and {disk} of disk ...",
                    flush=True,
                )
                began = time.monotonic()
                install_packages(root, venv, gpu)
                print(f"\rInstalled in {(time.monotonic() - began) / 60:.1f} minutes.", flush=True)
            write_stamp(venv, {**expected, "ours": ""})
            if (root / "pyproject.toml").exists():
                install_ours(root, venv)
                write_stamp(venv, expected)
        except subprocess.CalledProcessError:
            log = venv / "install.log"
            tail = log.read_text(encoding="utf-8").splitlines()[-15:] if log.exists() else []
            print(
                "\n".join(tail),
                (
                    f"Installation failed; the full log is in {log}. Fix the cause and run make "
                    "again."
                ),
                sep="\n",
                file=sys.stderr,
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
