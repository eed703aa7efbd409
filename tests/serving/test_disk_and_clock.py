"""The gateway on a full disk, on a read-only one, and with a clock that jumps by an hour."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.releases import Releases
from serving.gateway.observations import Observations
from tests.serving.gateway_server import ask, call, eventually, promote, running
from tests.serving.test_release_gateway import gateway
from tests.serving.test_serve_process import PATIENCE_S, free_port, serving
from tests.serving.traffic import SETTINGS, open_release
from tests.small_disk import full, small_disk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
STEPS = SETTINGS.model_copy(update={"shares": (0.5,), "min_pairs": 10})


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 8) as disk:
        yield disk


@pytest.fixture
def site(disk: Path, checkpoints: dict[str, Path]) -> Home:
    """A home on the small disk, with two versions and an open release."""
    home = Home(disk)
    for name in ("old", "new"):
        promote(home, name, checkpoints[name])
    return home


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """Make a disk read-only meanwhile."""

    def remount(how: str) -> bool:  # busy while a database is open
        command = ["mount", "-o", f"remount,{how}", str(disk)]
        return not subprocess.run(command, capture_output=True, check=False).returncode

    eventually(partial(remount, "ro"), PATIENCE_S)
    yield
    eventually(partial(remount, "rw"), PATIENCE_S)


def recorded(home: Home, names: list[str]) -> bool:
    """Return whether these responses are in the record."""
    return {*names} <= {row.response for _, row in Observations(home.observations).read()}


def ids(url: str, count: int) -> list[str]:
    """Send requests that must be answered, and return the responses' ids."""
    names = []
    for _ in range(count):
        status, reply = ask(url, max_tokens=4)
        assert status == 200, reply
        names.append(reply["id"].removeprefix("chatcmpl-"))
    return names


def test_without_a_writable_disk_answers_continue_and_no_record_is_lost(
    site: Home, disk: Path
) -> None:
    with running(gateway(site)) as url:
        open_release(Ledger(site.ledger), Releases(site.ledger), STEPS, 2)
        for fault in (full, read_only):
            first = ids(url, 3)
            eventually(partial(recorded, site, first))
            with fault(disk):
                meanwhile = ids(url, 60)  # enough for the next step of the release
                eventually(lambda: call(f"{url}/health/ready")[1]["status"] == "degraded")
                assert call(f"{url}/health/ready")[0] == 200
                vote = {"response": f"chatcmpl-{first[0]}", "value": "accepted"}
                status, refusal = call(f"{url}/feedback", vote)
                assert (status, refusal["error"]["code"]) == (503, "not_recorded"), refusal
            eventually(partial(recorded, site, meanwhile), PATIENCE_S)
            eventually(lambda: call(f"{url}/health/ready")[1]["status"] == "ok", PATIENCE_S)
            assert call(f"{url}/feedback", vote)[0] == 200
        releases = Releases(site.ledger)
        eventually(lambda: ids(url, 5) and releases.all()[-1].state == "promoted", PATIENCE_S)


def shim(folder: Path) -> Path:
    """Compile the shim of the clock."""
    if not (compiler := shutil.which("cc")):
        pytest.skip("no C compiler for the shim of the clock")
    library = folder / "clock.so"
    source = Path(__file__).parent / "clock_shim.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


def test_a_clock_that_jumps_by_an_hour_changes_nothing(
    home: Home, checkpoints: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "new"):
        promote(home, name, checkpoints[name])
    offset = tmp_path / "offset"
    offset.write_text("0")
    monkeypatch.setenv("LD_PRELOAD", str(shim(tmp_path)))
    monkeypatch.setenv("RATCHET_TEST_CLOCK", str(offset))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with serving(home, port):
        monkeypatch.delenv("LD_PRELOAD")
        releases = Releases(home.ledger)
        steps = STEPS.model_copy(update={"shares": (0.3, 0.6), "bake_s": 10.0})
        open_release(Ledger(home.ledger), releases, steps, 2)
        for step, jump_s in enumerate((3600, -3600)):
            ids(url, 60)
            offset.write_text(str(jump_s))
            ids(url, 5)
            eventually(partial(has_jumped, home, jump_s))
            assert releases.all()[-1].step == step  # not an hour older
            while len(releases.all()[-1].events) < step + 2:
                ids(url, 5)
                time.sleep(0.3)
        eventually(lambda: ids(url, 5) and releases.all()[-1].state == "promoted", PATIENCE_S)
        assert call(f"{url}/health/ready")[1]["status"] == "ok"
    assert all(row.total_s >= 0 for _, row in Observations(home.observations).read())


def has_jumped(home: Home, by_s: int) -> bool:
    """Return whether the newest observation has the clock that jumped."""
    rows = [row for _, row in Observations(home.observations).read()]
    return bool(rows) and abs(rows[-1].time - time.time() - by_s) < 60
