"""Start a real `mlflow server` on the loopback interface for tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from resources.ray.head import free_ports

START_S = 120.0


@dataclass
class MlflowServer:
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "mlflow",
            "server",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--workers",
            "1",
        ]
        command += [
            "--backend-store-uri",
            f"sqlite:///{self.folder / 'server.db'}",
            "--default-artifact-root",
            str(self.folder / "artifacts"),
        ]
        environment = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true"}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environment,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_S
        while not self._responds():
            assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.2)

    def stop(self) -> None:
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def _responds(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=2) as response:
                return bool(response.status == 200)
        except OSError:
            return False


@contextmanager
def mlflow_server(folder: Path) -> Iterator[MlflowServer]:
    folder.mkdir(parents=True, exist_ok=True)
    server = MlflowServer(folder, free_ports(1)[0])
    try:
        server.start()
        yield server
    finally:
        server.stop()
