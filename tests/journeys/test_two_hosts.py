"""Two homes in two network namespaces on one Postgres and one S3-compatible server.

The first one promotes and is deleted; the second one continues with empty hands.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from resources.home import Home
from tests.journeys.demo_run import wait_until
from tests.resources import postgres as database
from tests.serving.tiny_model import make_model

pytestmark = pytest.mark.soak
ROOT = Path(__file__).parents[2]
RATCHET = str(Path(sys.executable).with_name("ratchet"))
NET = "10.219.7"
FIRST_NIGHT = """
import shutil, sys
from artifacts.manifest import Manifest
from resources.run_record import open_run
from resources.settings import Settings
settings = Settings.read(sys.argv[1])
settings.home.make()
run = open_run(settings.home.runs, "chain-0001", kind="pipeline", base_seed=1, champion=None,
               profile=settings.reference, why="first night")
with settings.store.draft("checkpoints", "chain-0001") as folder:
    shutil.copytree(sys.argv[2], folder, dirs_exist_ok=True)
    manifest = Manifest(kind="checkpoints", name="chain-0001", key="a" * 64, content_hash="")
    weights = settings.store.publish(folder, manifest)
settings.ledger.append("install", checkpoint="chain-0001", checkpoint_hash=weights.content_hash,
                       path=str(weights.path), decision={}, run_id="chain-0001", against=None)
run.change(state="done", decision="install")
"""
NEXT_NIGHT = """
from resources.run_context import RunContext
from resources.settings import Settings
record = RunContext.of(Settings.read()).pipeline_run({}).record
print(record.id, record.number, record.champion.checkpoint)
"""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def hosts() -> Iterator[str]:
    """Yield the address of this machine in a network with the namespaces `rh-1` and `rh-2`."""
    try:
        with ExitStack() as stack:
            ip("link", "add", "rh-net", "type", "bridge")
            stack.callback(ip, "link", "del", "rh-net")
            ip("addr", "add", f"{NET}.254/24", "dev", "rh-net")
            ip("link", "set", "rh-net", "up")
            for number in (1, 2):
                name, own, pair = f"rh-{number}", f"{NET}.{number}/24", f"rh-v{number}"
                ip("netns", "add", name)
                stack.callback(ip, "netns", "del", name)
                ip("link", "add", pair, "type", "veth", "peer", "name", "eth0", "netns", name)
                ip("link", "set", pair, "master", "rh-net", "up")
                ip("-n", name, "addr", "add", own, "dev", "eth0")
                for device in ("lo", "eth0"):
                    ip("-n", name, "link", "set", device, "up")
            yield f"{NET}.254"
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no network namespaces here: {error}")


class Host:
    """A network namespace with a home. environment: of its processes."""

    def __init__(self, number: int, home: Path, environment: dict[str, str]) -> None:
        self.home, self.environment = home, environment | {"RATCHET_HOME": str(home)}
        self.prefix = ["ip", "netns", "exec", f"rh-{number}"]

    def run(self, *command: str) -> str:
        return subprocess.run(
            [*self.prefix, *command],
            env=self.environment, cwd=ROOT, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip

    @contextmanager
    def serving(self, profile: Path) -> Iterator[None]:
        command = [*self.prefix, RATCHET, "serve", "--port", "8000", "--profile", str(profile)]
        with subprocess.Popen(
            command, env=self.environment, cwd=ROOT, stdout=subprocess.DEVNULL
        ) as gateway:
            try:
                assert wait_until(lambda: '"id"' in self.answer(), 180)
                yield
            finally:
                gateway.terminate()

    def answer(self) -> str:
        body = {"model": "champion", "max_tokens": 4}
        body |= {"messages": [{"role": "user", "content": "1 + 1"}]}
        code = (
            "import sys, urllib.request as u; r = u.Request(sys.argv[1], sys.argv[2].encode(), "
            "{'Content-Type': 'application/json'}); print(u.urlopen(r, timeout=30).read().decode())"
        )
        url = "http://127.0.0.1:8000/v1/chat/completions"
        try:
            return self.run(sys.executable, "-c", code, url, json.dumps(body))
        except subprocess.CalledProcessError:
            return ""


@pytest.mark.timeout(900)
def test_an_empty_home_on_another_host_continues(tmp_path: Path) -> None:
    from moto.server import ThreadedMotoServer

    with hosts() as address, database.postgres() as server, ExitStack() as stack:
        server.listen(address, f"{NET}.0/24")
        server.fresh("team")
        moto = ThreadedMotoServer(ip_address=address, port=0, verbose=False)
        moto.start()
        stack.callback(moto.stop)
        profile = tmp_path / "team.yaml"
        profile.write_text(
            "extends: small\nstorage:\n  root: s3://team/artifacts\n"
            f"  ledger: postgresql://ratchet@{address}:{server.port}/team\n"
        )
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RATCHET_")} | {
            "AWS_ENDPOINT_URL": "http://{}:{}".format(*moto.get_host_and_port()),
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "PGPASSWORD": database.PASSWORD,
        }
        one, two = (Host(n, tmp_path / str(n), environment) for n in (1, 2))
        bucket = "import fsspec; fsspec.filesystem('s3').mkdir('team')"
        one.run(sys.executable, "-c", bucket)
        model = make_model(tmp_path / "model", 0)
        one.run(sys.executable, "-c", FIRST_NIGHT, str(profile), str(model))
        shutil.rmtree(one.home)
        with two.serving(profile):
            assert json.loads(two.answer())["model"] == "chain-0001"
        status = two.run(RATCHET, "status")  # the home remembers its profile
        assert "version 1, chain-0001" in status
        assert "missing" not in status
        assert two.run(sys.executable, "-c", NEXT_NIGHT).split() == [
            "chain-0002",
            "2",
            "chain-0001",
        ]
        assert Home(two.home).profile == str(profile)
