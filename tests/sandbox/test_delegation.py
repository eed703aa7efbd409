"""Control groups for slots in the kernel's own cgroup version 2.

Tests with whole owners need the controller `memory` there; on some machines it belongs to version
1.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.isolation import delegation

ROOT = (
    Path("/sys/fs/cgroup/unified")
    if Path("/sys/fs/cgroup/unified").is_dir()
    else Path("/sys/fs/cgroup")
)
# Set up as a container engine does it: a cgroup of its own, a namespace with that cgroup as root,
# and a mount of it.
CONTAINER = """read -r
exec unshare --mount --cgroup bash -c 'umount -l /sys/fs/cgroup && \
mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"' bash "$@" """
OWNER = """
import json
from sandbox.protocol import Job, Limits, StdioTest
from sandbox.sandbox import Sandbox, SandboxConfig, run_all

FORKS = "import os, time\\nfor _ in range(4):\\n    if not os.fork():\\n        \
held = bytearray(24 << 20)\\n        time.sleep(60)\\ntime.sleep(60)"
def job(source, memory_mb):
    return Job("", source, "stdio", (StdioTest("", "5"),), \
limits=Limits(wall_s=30.0, cpu_s=30.0, memory_mb=memory_mb))
with Sandbox(SandboxConfig(workers=2)) as sandbox:
    reports = run_all(sandbox, [job("print(5)", 64), job(FORKS, 64), \
job("held = bytearray(40 << 20)\\nprint(5)", 64), job("print(5)", 64)])
print(json.dumps({"isolation": sandbox._isolation, "verdicts": [r.verdict for r in reports], \
"peaks": [r.peak_bytes for r in reports]}))
"""


@pytest.fixture
def controller() -> Iterator[str]:
    """Yield a controller that the machine's root cgroup delegates for the duration of the test."""
    control = ROOT / "cgroup.subtree_control"
    if not os.access(control, os.W_OK) or (ROOT / "cgroup.type").exists():
        pytest.skip("the machine's own cgroup version 2 is not ours to write")
    offered, before = (ROOT / "cgroup.controllers").read_text().split(), control.read_text().split()
    if not offered:
        pytest.skip("the machine's cgroup version 2 has no controllers: all belong to version 1")
    delegated = "memory" if "memory" in offered else offered[0]
    control.write_text(f"+{delegated}")
    yield delegated
    if delegated not in before:
        with contextlib.suppress(OSError):  # other processes use it now
            control.write_text(f"-{delegated}")


@pytest.fixture
def box(controller: str) -> Iterator[Path]:
    """Yield a cgroup for processes of the test; they are killed at its end."""
    folder = ROOT / f"test-{os.getpid()}"
    folder.mkdir()
    yield folder
    folders = [folder, *(path for path in folder.glob("**/*") if path.is_dir())]
    while pids := [
        int(pid) for path in folders for pid in (path / "cgroup.procs").read_text().split()
    ]:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    for path in sorted(folders, reverse=True):
        path.rmdir()


def held_by(folder: Path) -> set[int]:
    return {int(pid) for pid in (folder / "cgroup.procs").read_text().split()}


def started_in(folder: Path, *command: str) -> subprocess.Popen[str]:
    enter = ["bash", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(folder), *command]
    return subprocess.Popen(
        enter,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )


def waited_for(folder: Path, processes: int) -> set[int]:
    while len(pids := held_by(folder)) < processes:
        time.sleep(0.01)
    return pids


def test_controllers_are_delegated_after_processes_have_moved(box: Path, controller: str) -> None:
    sleepers = [started_in(box, "sleep", "100") for _ in range(3)]
    inside = waited_for(box, 3)
    with pytest.raises(OSError):  # the kernel's rule that makes this necessary
        (box / "cgroup.subtree_control").write_text(f"+{controller}")
    delegation.hand_down(box, (controller,))
    assert (box / "cgroup.subtree_control").read_text().split() == [controller]
    assert held_by(box / delegation.MAIN) == inside == {sleeper.pid for sleeper in sleepers}
    assert not held_by(box)


def test_a_process_that_keeps_forking_is_moved_with_its_children(
    box: Path, controller: str
) -> None:
    started_in(box, "bash", "-c", "while :; do sleep 0.001 & sleep 0.002; done")
    waited_for(box, 1)
    delegation.hand_down(box, (controller,))
    assert not held_by(box)
    assert held_by(box / delegation.MAIN)


def test_concurrent_owners_do_not_touch_other_slots(box: Path, controller: str) -> None:
    slots = {number: started_in(box, "sleep", "100").pid for number in range(4)}
    waited_for(box, 4)
    owner = """import sys; from pathlib import Path; from sandbox.isolation import delegation
box, number, controller, pid = Path(sys.argv[1]), *sys.argv[2:]
delegation.hand_down(box, (controller,))
(slot := box / f"slot-{number}").mkdir()
(slot / "cgroup.procs").write_text(pid)"""
    owners = [
        started_in(box, sys.executable, "-c", owner, str(box), str(number), controller, str(pid))
        for number, pid in slots.items()
    ]
    assert [one.wait() for one in owners] == [0] * 4
    assert {number: held_by(box / f"slot-{number}") for number in slots} == {
        number: {pid} for number, pid in slots.items()
    }


def test_a_cgroup_of_systemd_is_ours_only_if_delegated(box: Path) -> None:
    (scope := box / "session-1.scope").mkdir()
    assert not delegation.is_ours(scope, ROOT)
    os.setxattr(scope, "user.delegate", b"1")
    assert delegation.is_ours(scope, ROOT)


def test_a_foreign_cgroup_is_not_used(box: Path) -> None:
    with pytest.raises(PermissionError, match="does not contain this process"):
        delegation.parent_of_slots(box, ROOT)


@pytest.mark.slow
def test_memory_is_summed_with_cgroup_version_2_in_containers(box: Path, controller: str) -> None:
    if controller != "memory":
        pytest.skip("memory belongs to cgroup version 1 here")
    (ROOT / "cgroup.subtree_control").write_text("+pids")
    bystander = started_in(box, "sleep", "1000")
    owners = [
        started_in(box, "bash", "-c", CONTAINER, "bash", sys.executable, "-c", OWNER)
        for _ in range(2)
    ]
    waited_for(box, 3)
    for owner in owners:
        assert owner.stdin
        print(file=owner.stdin, flush=True)
    for owner in owners:
        outcome = json.loads(owner.communicate()[0])
        assert outcome["isolation"].endswith("+cgroup")
        assert outcome["verdicts"] == ["AC", "MLE", "AC", "AC"]
        assert outcome["peaks"][0] < 30e6 < 40e6 < outcome["peaks"][2] < 64 * 2**20
        assert outcome["peaks"][3] < 30e6
    assert [path.name for path in box.iterdir() if path.is_dir()] == [delegation.MAIN]
    assert held_by(box / delegation.MAIN) == {bystander.pid}
