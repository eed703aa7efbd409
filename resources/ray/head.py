"""A private local Ray that ends automatically: `python -m resources.ray.head FOLDER`.

It starts a head node on 127.0.0.1 (or RATCHET_RAY_BIND) with free ports, writes `head.json`, and
watches its holders: a file `holders/<pid>` for each process that needs the cluster, an owner's or
the training's own (verl_jobs/trainer/trainer_lease.py). When all holders are gone for `GRACE_S`
seconds it stops Ray and ends, so a killed command line leaves no orphan. When it is killed itself,
the kernel ends Ray's processes with it. There is one per folder, enforced by a kernel lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from artifacts.atomic import write_atomic
from verl_jobs.trainer.trainer_lease import Deadline, Silence, start_time

GRACE_S = 20.0
START_S = 90.0
HOLDERS = "holders"
LOOPBACK = "127.0.0.1"
# Environment variables: modules to preload instead of PRELOAD, separated by blanks; logical CPUs.
PRELOADED, CPUS = "RATCHET_RAY_PRELOADED", "RATCHET_RAY_CPUS"
# Ray's command line, without the server of `ray://` addresses, which nothing here uses and which no
# option turns off. On a busy machine it gives up after 30 s, and its end ends the node.
WITHOUT_CLIENT_SERVER = (
    "import ray.scripts.scripts as ray; "
    "ray.get_ray_client_dependency_error = lambda: 'not used'; ray.main()"
)
# Every verl actor imports these: workers that have preloaded them start seconds sooner.
PRELOAD = [
    "torch",
    "transformers",
    "verl",
    "verl.trainer.main_ppo",
    "verl.workers.engine_workers",
    "transfer_queue",
]


def main(folder: Path) -> None:
    with (folder / "head.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # another head serves this folder
        sweep(folder / "head.json")
        # Ray's sockets need a path of fewer than 108 bytes, which a home may exceed.
        session = Path(tempfile.mkdtemp(prefix="ratchet-ray-", dir="/tmp"))
        session.chmod(0o711)  # a sandboxed program has a user of its own and a folder below this
        ray = start(folder, session)
        try:
            watch(folder, ray)
        finally:
            stop(ray)
            (folder / "head.json").unlink(missing_ok=True)
            shutil.rmtree(session, ignore_errors=True)


def sweep(about: Path) -> None:
    """Remove the session and the file of a head that was killed."""
    if head := described(about):
        shutil.rmtree(head["session"], ignore_errors=True)
    about.unlink(missing_ok=True)


def described(about: Path) -> dict[str, Any]:
    """Return the head that a `head.json` describes; empty if it is missing or damaged."""
    try:
        head = json.loads(about.read_text(encoding="utf-8"))
        return {name: head[name] for name in ("pid", "session", "address", "dashboard")}
    except (FileNotFoundError, ValueError, LookupError, TypeError):
        return {}


def start(folder: Path, session: Path) -> subprocess.Popen[bytes]:
    """Start the head node and write `head.json` once it responds.

    Raises RuntimeError with the log's path if it does not respond in time.
    """
    host = os.environ.get("RATCHET_RAY_BIND", LOOPBACK)
    gcs, dashboard = ports = free_ports(2)
    log = (folder / "head.log").open("ab")
    temporary = session / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    environment = os.environ | {
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "2"),
        # Locks and caches of verl, W&B and torch go with the session.
        "TMPDIR": str(temporary),
    }
    ray = subprocess.Popen(
        _command(session, host, ports),
        stdout=log,
        stderr=log,
        stdin=subprocess.DEVNULL,
        env=environment,
        preexec_fn=_die_with_parent,
    )
    deadline = Deadline(START_S)
    while not deadline.passed() and ray.poll() is None:
        if _listens(host, gcs) and _listens(host, dashboard):
            about = {
                "pid": os.getpid(),
                "address": f"{host}:{gcs}",
                "dashboard": f"http://{host}:{dashboard}",
                "session": str(session),
            }
            write_atomic(folder / "head.json", json.dumps(about))
            return ray
        time.sleep(0.1)
    raise RuntimeError(f"Ray did not start within {START_S:.0f} s: see {folder / 'head.log'}")


def _command(session: Path, host: str, ports: Sequence[int]) -> list[str]:
    gcs, dashboard = ports
    preload = os.environ[PRELOADED].split() if PRELOADED in os.environ else PRELOAD
    return [
        python(session),
        "-c",
        WITHOUT_CLIENT_SERVER,
        "start",
        "--head",
        "--block",
        f"--node-ip-address={host}",
        f"--port={gcs}",
        "--include-dashboard=true",
        f"--dashboard-host={host}",
        f"--dashboard-port={dashboard}",
        # 0: they choose a port as they bind it. An agent whose port another process has taken in
        # the meantime runs on without its HTTP server, and no job can be submitted.
        "--dashboard-agent-listen-port=0",
        "--metrics-export-port=0",
        "--runtime-env-agent-port=0",
        # Logical CPUs: verl's actors claim one each and share the cores.
        f"--num-cpus={os.environ.get(CPUS, '16')}",
        f"--num-gpus={os.environ.get('RATCHET_RANKS', '1')}",
        f"--object-store-memory={256 * 2**20}",
        f"--temp-dir={session}",
        "--disable-usage-stats",
        "--include-log-monitor=false",
        f"--system-config={json.dumps({'preload_python_modules': preload})}",
    ]


def python(session: Path) -> str:
    """Return this interpreter by a path without spaces.

    Ray puts the path unquoted into shell commands, and that of one of its libraries into
    LD_PRELOAD.
    """
    if not any(map(str.isspace, sys.executable)):
        return sys.executable
    link = session / "python"
    link.symlink_to(sys.prefix)
    return str(link / Path(sys.executable).relative_to(sys.prefix))


def watch(folder: Path, ray: subprocess.Popen[bytes]) -> None:
    """Return when Ray has ended, or had no holder for GRACE_S."""
    silence = Silence()
    while ray.poll() is None and silence.seconds(heard=bool(live_holders(folder))) < GRACE_S:
        time.sleep(0.5)


def stop(ray: subprocess.Popen[bytes]) -> None:
    """End Ray and all of its processes, including detached ones."""
    tree = psutil.Process(ray.pid).children(recursive=True) if ray.poll() is None else []
    ray.send_signal(signal.SIGTERM)
    try:
        ray.wait(15)
    except subprocess.TimeoutExpired:
        ray.kill()
    for process in tree:
        with contextlib.suppress(psutil.NoSuchProcess):  # gone with Ray
            process.kill()


def live_holders(folder: Path) -> list[int]:
    """Return the processes that need the head.

    A holder's file contains pid and start time, so that a reused pid does not count.
    """
    alive = []
    # A holder file that is still being written has another name.
    for path in (folder / HOLDERS).glob("[0-9]*"):
        try:
            if start_time(int(path.name)) == path.read_text(encoding="utf-8"):
                alive.append(int(path.name))
                continue
        except (FileNotFoundError, ProcessLookupError):
            pass
        path.unlink(missing_ok=True)
    return alive


def free_ports(count: int) -> list[int]:
    """Return ports that were free on 127.0.0.1 a moment ago, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((host, port)) == 0


def _die_with_parent() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    main(Path(sys.argv[1]))
