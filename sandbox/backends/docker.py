"""Workers in containers: one warm container per slot, started once, reached through its stdin and
stdout.

The container has no network, a read-only root, no capabilities, no new privileges, limits of
processes, memory and CPU, and a user who owns nothing. Inside, the worker confines each program
again by its own isolation levels. The worker's system call filter replaces the engine's, which
would refuse calls before they can be counted. If any of this is not granted, that is an error.
The image is made once from this machine's interpreter by `docker import`, without a registry.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

from sandbox.backends import BackendKind, WorkerDied, image
from sandbox.backends.local import IsolationError, folders_of
from sandbox.isolation import cgroups
from sandbox.wire import Frames, TooLong, frame

REPOSITORY = "ratchet-sandbox"
OWNER = "ratchet.sandbox.owner"  # label: host and pid of the process that owns the container
START_S = 60.0
NOBODY = "65534:65534"
# A program sees only its own processes in /proc, and uses /proc for /dev/stdin. The kernel allows
# such a mount only if no part of the container's /proc is masked.
UNMASKED: dict[str, list[str]] = {"MaskedPaths": [], "ReadonlyPaths": []}
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "TMPDIR": image.SCRATCH,
    "PYTHONDONTWRITEBYTECODE": "1",
}


class DockerBackend:
    """Starts workers in containers of the engine that DOCKER_HOST names, or of the usual socket.

    isolation, packages: as in LocalBackend.
    memory_mb: for all processes of a container: the program, the process that judges it, and the
        processes that they were forked from.
    Raises IsolationError when no engine answers.
    """

    def __init__(
        self,
        isolation: str,
        packages: tuple[str, ...],
        *,
        memory_mb: int = 4096,
        processes: int = 512,
    ) -> None:
        import docker
        from docker.errors import DockerException

        self.isolation, self.packages = isolation, folders_of(packages)
        self._limits = {
            "mem_limit": f"{memory_mb}m",
            "memswap_limit": f"{memory_mb}m",
            "pids_limit": processes,
        }
        try:
            self._engine = docker.from_env(timeout=int(START_S))
            self._sweep()
            self._image = self._imported()
            self.workers = int(self._engine.info()["NCPU"])
        except DockerException as error:
            raise IsolationError(
                f"no Docker engine answers ({error}): start one, set DOCKER_HOST, or choose "
                "another backend"
            ) from error

    def open(self, number: int, of: int) -> DockerChannel:
        from docker.errors import DockerException

        try:
            return DockerChannel(self._engine.api, self._create(), self.isolation)
        except DockerException as error:
            raise WorkerDied(f"no container could be started: {error}") from None

    def close(self) -> None:
        self._sweep()
        self._engine.close()

    def _create(self) -> str:
        config = {"isolation": self.isolation, "packages": self.packages, "owner": None}
        api = self._engine.api
        host = api.create_host_config(
            network_mode="none", read_only=True, cap_drop=["ALL"],
            security_opt=["no-new-privileges", "seccomp=unconfined"], ipc_mode="none",
            auto_remove=True,
            tmpfs={image.SCRATCH: "rw,nosuid,nodev,noexec,size=256m,nr_inodes=32768,mode=1777"},
            log_config={"type": "none"}, nano_cpus=1_000_000_000, **self._limits,
        )  # fmt: skip
        host |= UNMASKED
        container = api.create_container(
            self._image,
            [image.interpreter(), "-S", "-s", "-E", "-P", f"{image.SOURCES}/worker_process.py",
             json.dumps(config)],
            user=NOBODY, stdin_open=True, environment=ENVIRONMENT, labels={OWNER: _owner()},
            network_disabled=True, host_config=host,
        )  # fmt: skip
        if lacking := [text for text in container.get("Warnings") or () if "swap" not in text]:
            api.remove_container(container["Id"], force=True)
            raise IsolationError(
                f"the Docker engine did not grant these settings: {'; '.join(lacking)}"
            )
        return str(container["Id"])

    def _imported(self) -> str:
        from docker.errors import ImageNotFound

        root = image.root_of(self.packages)
        tag = image.name_of(root)
        name = f"{REPOSITORY}:{tag}"
        try:
            self._engine.images.get(name)
        except ImageNotFound:
            with tempfile.TemporaryDirectory() as folder:
                image.pack(root, packed := Path(folder) / "root.tar")
                self._engine.api.import_image_from_file(str(packed), repository=REPOSITORY, tag=tag)
        return name

    def _sweep(self) -> None:
        """Remove containers whose owner on this host is gone. A container also ends when its owner
        is killed, because its stdin is closed.
        """
        for found in self._engine.api.containers(all=True, filters={"label": OWNER}):
            host, _, pid = found["Labels"][OWNER].rpartition(" ")
            if host == socket.gethostname() and not cgroups.alive(int(pid)):
                _remove(self._engine.api, found["Id"])


class DockerChannel:
    """A container and the stream attached to its stdin, stdout and stderr."""

    where = "docker: no network+read-only+no capabilities+limits, "

    def __init__(self, api: Any, container: str, isolation: str) -> None:
        self.container, self._api = container, api
        self._reader, self._left, self._said = Frames(most=1 << 28), bytearray(), ""
        try:
            attached = api.attach_socket(
                container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
            self._stream = getattr(attached, "_sock", attached)
            self._attached = attached  # closing its last reference would close the stream
            api.start(container)
            _require_confined(api.inspect_container(container))
            hello = json.loads(self.hear(START_S))
            if "broken" in hello:
                raise WorkerDied(hello["broken"])
            if "isolation" not in hello:
                raise IsolationError(
                    f"isolation {isolation!r} is not available in a container "
                    f"({hello.get('refused')} {self._said}): choose a lower level, or auto"
                )
        except BaseException:
            self.close()
            raise
        self.isolation = self.where + hello["isolation"]

    def send(self, payload: bytes, timeout_s: float) -> None:
        try:
            self._stream.settimeout(timeout_s)
            self._stream.sendall(frame(payload))
        except OSError as error:
            raise WorkerDied(f"container {self.container[:12]}: {error}") from None

    def hear(self, timeout_s: float) -> bytes:
        until = time.monotonic() + timeout_s
        try:
            while (left := until - time.monotonic()) > 0:
                if not select.select([self._stream], [], [], left)[0]:
                    break
                if not (data := self._stream.recv(1 << 20)):
                    raise WorkerDied(
                        f"container {self.container[:12]} is "
                        f"gone{self._said and f', its stderr: {self._said}'}"
                    )
                for answer in list(self._reader.feed(self._stdout(data))):
                    return bytes(answer)
        except (OSError, TooLong) as error:
            raise WorkerDied(f"container {self.container[:12]}: {error}") from None
        raise WorkerDied(f"container {self.container[:12]} gave no answer within {timeout_s:.0f} s")

    def _stdout(self, data: bytes) -> bytes:
        """Return the stdout part of this data and keep the last part of stderr. Each piece has a
        header with stream and length.
        """
        self._left += data
        pieces = []
        while len(self._left) >= 8 and len(self._left) >= 8 + (
            length := struct.unpack_from(">I", self._left, 4)[0]
        ):
            piece = bytes(self._left[8 : 8 + length])
            if self._left[0] == 1:
                pieces.append(piece)
            else:
                self._said = (self._said + piece.decode("utf-8", "replace"))[-300:]
            del self._left[: 8 + length]
        return b"".join(pieces)

    def close(self) -> None:
        if stream := getattr(self, "_stream", None):
            with contextlib.suppress(OSError):
                stream.close()
        _remove(self._api, self.container)


def _require_confined(inspected: dict[str, Any]) -> None:
    """Raise IsolationError if the engine's description of the running container differs from what
    was requested.
    """
    host = inspected["HostConfig"]
    required = {
        "no network": host["NetworkMode"] == "none"
        and set(inspected["NetworkSettings"]["Networks"]) <= {"none"},
        "a read-only root": host["ReadonlyRootfs"] is True,
        "no capabilities": host["CapDrop"] == ["ALL"]
        and not host["CapAdd"]
        and not host["Privileged"],
        "no new privileges": any(
            option.startswith("no-new-privileges") for option in host["SecurityOpt"] or ()
        ),
        "limits": host["Memory"] > 0 and host["NanoCpus"] > 0 and (host["PidsLimit"] or 0) > 0,
        "nothing mounted": not host["Binds"] and not inspected["Mounts"],
    }
    if lacking := [name for name, holds in required.items() if not holds]:
        raise IsolationError(
            f"the container lacks {', '.join(lacking)}: the Docker engine changed the requested "
            "settings"
        )


def _remove(api: Any, container: str) -> None:
    from docker.errors import DockerException

    # gone, or being removed: it was created with auto_remove
    with contextlib.suppress(DockerException):
        api.remove_container(container, force=True)


def _owner() -> str:
    return f"{socket.gethostname()} {os.getpid()}"


BACKEND = BackendKind(DockerBackend)
