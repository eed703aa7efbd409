"""`ratchet ui`: Dagster's web interface and daemon, which start and stop together."""

import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from resources.ray.head import free_ports
from tests.journeys.demo_run import orphans, ratchet, wait_until

# A script's shell starts background processes like this.
IN_BACKGROUND = [
    "sh",
    "-c",
    'trap "" INT; exec "$0" "$@"',
]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_the_stopped_web_interface_leaves_no_process(tmp_path: Path) -> None:
    [port] = free_ports(1)
    environment = os.environ | {
        "RATCHET_HOME": str(tmp_path / "a home"),
        "RATCHET_PROFILE": "small",
    }
    with (tmp_path / "log").open("w") as log:
        command = [*IN_BACKGROUND, *ratchet("ui", "--port", str(port))]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )
    assert wait_until(lambda: answers(f"http://127.0.0.1:{port}/server_info"), 120), (
        tmp_path / "log"
    ).read_text()
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    assert orphans(tmp_path / "a home") == []


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False
