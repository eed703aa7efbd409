"""An OpenAI-compatible server as a child process: start, wait until it is healthy, stop.

In: a command and the health endpoint. Out: an engine. The child is stopped with the gateway.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Mapping, Sequence

from serving.completion import Delta, EngineFailed, EngineRequest
from serving.running_clock import running_clock
from serving.upstream import Upstream

START_S, STOP_S = 600.0, 30.0
HEALTH_S = 2.0  # longest wait for the health endpoint
PR_SET_PDEATHSIG = 1
# A child on the loopback is never behind the proxy that HTTP_PROXY names.
LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ServerProcess:
    """A model server that runs as a child process.

    command: starts a server on this port of the loopback. health: path that answers 200 once the
    model is loaded. Its output goes to this process's stderr.

    Raises EngineFailed if it ends, or is not healthy within `START_S`.
    """

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        model: str,
        health: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=2,
                env=os.environ | dict(environment or {}),
                preexec_fn=_die_with_parent,
            )
        except OSError as error:
            raise EngineFailed(f"cannot start {command[0]}: {error.strerror}") from error
        self.address = f"http://127.0.0.1:{port}"
        self._upstream = Upstream(f"{self.address}/v1", model)
        self._health = f"{self.address}{health}"
        try:
            self._wait()
        except EngineFailed:
            self.close()
            raise

    def check(self) -> None:
        """Raise EngineFailed if the process has ended."""
        if (code := self.process.poll()) is not None:
            raise EngineFailed(f"the engine's process ended with {code}")

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        self.check()
        async for delta in self._upstream.stream(request):
            yield delta

    def healthy(self) -> bool:
        if self.process.poll() is not None:
            return False
        try:
            with LOCAL.open(self._health, timeout=HEALTH_S):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def close(self) -> None:
        self._upstream.close()
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _wait(self) -> None:
        clock = running_clock()
        end = clock.now() + START_S
        while clock.now() < end:
            if (code := self.process.poll()) is not None:
                raise EngineFailed(f"the engine's process ended with {code} before it was ready")
            if self.healthy():
                return
            time.sleep(0.2)
        raise EngineFailed(f"the engine's process was not ready within {START_S:g} s")


def _die_with_parent() -> None:
    """Get SIGTERM when the gateway ends, also by `kill -9`."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
