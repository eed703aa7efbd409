"""deploy/bundle.py: parts of a chosen size, GPU code of one architecture, a bare environment."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.bundle import CUBIN, FATBIN, JoinedParts, Parts, only, packed

PTX = 1
BUNDLE = Path(__file__).parents[2] / "deploy" / "bundle.py"


def fatbin(*entries: tuple[int, int, bytes]) -> bytes:
    """Return a fatbinary of (kind, compute capability, code)."""
    body = b"".join(
        struct.pack("<HHIQII", kind, 1, 64, len(code), 0, 0)
        + struct.pack("<II", 0, capability).rjust(8, b"\0")[:8].ljust(40, b"\0")
        + code
        for kind, capability, code in (
            (kind, capability, code.ljust(8, b".")) for kind, capability, code in entries
        )
    )
    return struct.pack("<IHHQ", FATBIN, 1, 16, len(body)) + body


def test_code_of_other_architectures_is_zeros() -> None:
    library = b"ELF" + fatbin((CUBIN, 80, b"old"), (CUBIN, 90, b"ours"), (PTX, 80, b"ptx")) + b"end"
    kept = only(library, 90)
    assert len(kept) == len(library)
    assert b"ours" in kept
    assert b"old" not in kept
    assert b"ptx" not in kept
    assert kept.endswith(b"end")


def test_a_kernel_without_code_for_the_architecture_keeps_its_ptx() -> None:
    kept = only(fatbin((CUBIN, 80, b"old"), (PTX, 80, b"ptx")), 90)
    assert b"ptx" in kept
    assert b"old" not in kept


def test_parts_have_the_chosen_size_and_join_to_what_was_written(tmp_path: Path) -> None:
    parts = Parts(tmp_path, 10)
    parts.write(b"abcdefghijklmno")
    parts.write(b"pqrstuvwxyz")
    parts.finish()
    assert [path.stat().st_size for path in sorted(tmp_path.iterdir())] == [10, 10, 6]
    assert JoinedParts(tmp_path, parts.digests).read() == b"abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(("fault", "message"), [("missing", "missing"), ("changed", "damaged")])
def test_a_part_that_is_missing_or_damaged_is_named(
    fault: str, message: str, tmp_path: Path
) -> None:
    parts = Parts(tmp_path, 4)
    parts.write(b"abcdefgh")
    if fault == "missing":
        (tmp_path / "part-001").unlink()
    else:
        (tmp_path / "part-001").write_bytes(b"efgH")
    with pytest.raises(SystemExit, match=f"part-001 is {message}"):
        JoinedParts(tmp_path, parts.digests).read()


def test_what_names_this_machine_and_what_is_left_out_is_not_packed(tmp_path: Path) -> None:
    names = ["a.py", "__editable___ratchet_finder.py", "torch/x.py", "ray/jars/y.jar", "ray/z.py"]
    names += ["ratchet_rl.dist-info/direct_url.json", "ratchet_rl.dist-info/entry_points.txt"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    packed_names = {str(path.relative_to(tmp_path)) for path in packed(tmp_path, ["torch"])}
    assert packed_names == {"a.py", "ray/z.py", "ratchet_rl.dist-info/entry_points.txt"}


@pytest.mark.slow
def test_a_bundle_of_this_environment_starts_ratchet_elsewhere(tmp_path: Path) -> None:
    """The host's torch is this interpreter's; only a few packages are packed."""
    venv, clone = Path(sys.prefix), BUNDLE.parents[1]
    site = next(venv.glob("lib/python3.*/site-packages"))
    kept = {"typer", "click", "rich", "shellingham"}
    without = [path.name for path in site.iterdir() if path.name not in kept]
    command = [
        sys.executable,
        str(BUNDLE),
        "make",
        str(tmp_path / "bundle"),
        "--environment",
        str(venv),
    ]
    extra = tmp_path / "model.gguf"
    extra.write_bytes(b"weights")
    subprocess.run(
        [*command, "--part-mib", "0.1", "--host-torch", "--add", str(extra), "--without", *without],
        check=True,
    )
    target = tmp_path / "host"
    packed_bundle = tmp_path / "bundle"
    install = [sys.executable, str(packed_bundle / "bundle.py"), "install", str(packed_bundle)]
    subprocess.run([*install, "--to", str(target), "--clone", str(clone)], check=True)
    assert (target / "files" / "model.gguf").read_bytes() == b"weights"
    shown = subprocess.run(
        [target / "bin" / "ratchet", "--help"], capture_output=True, text=True, check=True
    )
    assert "gpu-acceptance" in shown.stdout
