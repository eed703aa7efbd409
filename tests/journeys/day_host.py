"""A host with Ratchet's services as a supervisor keeps them, and what it needs around it.

Records and Dagster's own are on Postgres, artifacts in an S3-compatible store, messages go to a
receiver. The home has a disk of its own, and its processes a clock of their own. All of them
outlive a stopped test, which finds them again.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from artifacts.atomic import write_atomic
from resources import lease
from resources.backup.databases import PASSWORD
from resources.ray.head import free_ports
from resources.registry.ledger_database import LedgerUnreachable
from resources.run_record import RunRecord, records
from resources.settings import Settings
from tests.journeys.demo_run import kill_any, now_at, of_home, ratchet, steps, wait_until
from tests.receiver import receiver
from tests.resources import postgres
from tests.serving.gateway_server import ask
from tests.serving.test_disk_and_clock import shim
from tests.small_disk import mount, unmount

DISK_MIB, NIGHT_S, TRIES, IDLE_S = 1600, 2400, 5, 240
AWS = {
    "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"
}  # fmt: skip
PROFILE = """extends: small
family: {{demonstrations: 60, train: 16, validation: 4}}
augmentation: {{kinds: []}}
verification: {{mutants: 0}}
warm_up: {{steps: 4}}
ranking: {{problems: 4, answers: 2}}
training: {{steps: 4, problems_per_step: 4, group_size: 4, save_every: 1}}
evaluation: {{heldout: 8, benchmarks: []}}
automation: {{retrain: true, nightly: "0 2 * * *", silent_hours: 100}}
needs: {{disk_gib: 0.3, memory_gib: 1}}
notify: {{receivers: [{{url: DAY_RECEIVER}}]}}
storage:
  root: s3://day/artifacts
  ledger: postgresql://ratchet@127.0.0.1:{port}/day
orchestration:
  postgres: {{hostname: 127.0.0.1, port: {port}, username: ratchet, database: dagster}}
"""
OUTSIDE = f"""import pathlib, sys, types
tests = sys.modules["tests"] = types.ModuleType("tests")  # an installed package has this name too
tests.__path__ = [{str(Path(__file__).parents[1])!r}]
from tests.journeys.day_host import outside
outside(pathlib.Path(sys.argv[1]))
"""


class Day:
    """The host, and what was seen of it. state: what a stopped test continues with."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.disk, self.file = folder, folder / "disk", folder / "day.json"
        mount(self.disk, DISK_MIB)
        os.environ["PGPASSWORD"] = postgres.PASSWORD
        if self.file.exists():
            self.state = json.loads(self.file.read_text())
        else:
            database = Path(tempfile.mkdtemp(prefix="ratchet-day-"))
            server = postgres.cluster(database)
            self.state = {"postgres": str(database), "port": server.port}
            self.state |= {"ports": free_ports(2), "done": 0, "offset_s": 0, "began": time.time()}
            self.state |= {"pids": {}, "starts": {}, "seen": {}, "events": [], "sizes": []}
            for name in ("day", "dagster"):
                server.fresh(name)
            (folder / "day.yaml").write_text(PROFILE.format(port=self.state["port"]))
            shim(folder)
        self.server = postgres.installed(Path(self.state["postgres"]), self.state["port"])
        if not (self.server.folder / "data" / "postmaster.pid").exists():
            self.server.start()
        self.clock(0)
        self.faults(0.0)
        self.commands = {"outside": [sys.executable, "-c", OUTSIDE, str(folder)]}
        self.keep()
        assert wait_until((folder / "outside.json").exists, 60)
        os.environ |= json.loads((folder / "outside.json").read_text()) | {
            PASSWORD: postgres.PASSWORD,
            "RATCHET_HOME": str(self.disk / "home"),
            "RATCHET_PROFILE": str(folder / "day.yaml"),
        }
        web, port = map(str, self.state["ports"])
        self.commands |= {
            "daemon": ratchet("ui", "--port", web),
            "gateway": ratchet("serve", "--port", port),
            "watch": ratchet("watch", "--every", "10"),
        }
        self.settings = Settings.read()
        self.home, self.busy_at = self.settings.place.path, time.monotonic()
        self.say("the day begins" if not self.state["done"] else "the test continues")

    def save(self) -> None:
        write_atomic(self.file, json.dumps(self.state, indent=1))

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.state["offset_s"])

    def say(self, text: str) -> None:
        minutes = (time.time() - self.state["began"]) / 60
        self.state["events"].append(f"{minutes:5.1f} min  {self.now():%d %H:%M:%S}  {text}")
        print(self.state["events"][-1], flush=True)
        self.save()

    def clock(self, seconds: float) -> None:
        """Step the clock of the home's processes."""
        self.state["offset_s"] += round(seconds)
        self.save()
        write_atomic(self.folder / "clock", f"{self.state['offset_s']}\n")

    def faults(self, share: float) -> None:
        """Let this share of the requests to the object store fail."""
        write_atomic(self.folder / "faults", str(share))

    def keep(self) -> None:
        """Start each service that does not run, as a unit file does."""
        for name, command in self.commands.items():
            if not self.tree(name):
                self.kill(name)
                clock = {"RATCHET_TEST_CLOCK": str(self.folder / "clock")}
                if name != "outside":
                    clock["LD_PRELOAD"] = str(self.folder / "clock.so")
                with (self.folder / f"{name}.log").open("ab") as log:
                    process = subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                        env=os.environ | clock, start_new_session=True,
                    )  # fmt: skip
                self.state["pids"][name] = process.pid
                self.state["starts"][name] = self.state["starts"].get(name, 0) + 1
                self.save()

    def tree(self, name: str) -> list[psutil.Process]:
        """Return the processes of a service; runs that it started are left out."""
        with suppress(psutil.Error, KeyError):
            parent = psutil.Process(self.state["pids"][name])
            if parent.status() != psutil.STATUS_ZOMBIE:
                below = parent.children(recursive=True)
                return [parent, *(each for each in below if session(each) == parent.pid)]
        return []

    def kill(self, name: str) -> None:
        with suppress(ProcessLookupError, KeyError):
            os.killpg(self.state["pids"][name], signal.SIGKILL)
        with suppress(ChildProcessError, KeyError):
            os.waitpid(self.state["pids"][name], 0)

    def runs(self) -> list[RunRecord]:
        """Keep the services running, note the ledger, and return the pipeline runs."""
        self.keep()
        with suppress(LedgerUnreachable):
            for entry in self.settings.ledger.history():
                self.state["seen"][str(entry.entry)] = entry.run_id
            if lease.holder(self.settings.home.lease):
                self.busy_at = time.monotonic()
            return [each for each in records(self.settings.home.runs) if each.kind == "pipeline"]
        return []

    def decided(self) -> int:
        return sum(bool(record.decision) for record in self.runs())

    def wait(self, condition: Callable[[], Any], seconds: float = NIGHT_S) -> None:
        """Wait until it is true, or nothing has worked for a while."""
        self.busy_at = time.monotonic()
        end = self.busy_at + seconds
        while self.runs() is not None and not condition():
            if time.monotonic() > min(end, self.busy_at + IDLE_S):
                return
            time.sleep(1)

    def stay(self, seconds: float) -> None:
        self.wait(lambda: False, seconds)

    def night(self) -> None:
        """Step forward to the next two o'clock, less some seconds."""
        now = self.now()
        due = now.replace(hour=2, minute=0, second=0) - timedelta(seconds=20)
        self.clock((due - now).total_seconds() % 86400)
        self.say("a night is due")

    def until_decided(self, count: int) -> None:
        """Wait for so many decisions. A night that failed is continued by the next."""
        for _ in range(TRIES):
            self.wait(lambda: self.decided() >= count)
            if self.decided() >= count:
                return self.say(f"{count} decided: {[each.decision for each in self.runs()]}")
            self.say(f"not decided: {[each.error for each in self.runs()]}")
            self.night()
        raise AssertionError(f"no decision after {TRIES} nights")

    def answers(self) -> list[dict[str, Any]]:
        """Return status and id of each answer of the gateway; status 0: there was none."""
        return [json.loads(line) for line in (self.folder / "answers.jsonl").open()]

    def step(self, night: int) -> int:
        """Return the last step of a night's training."""
        return max(map(steps, self.home.glob(f"runs/chain-{night:04d}/training/*")), default=0)

    def kill_one(self) -> None:
        """Kill a process of the daemon, a run, Ray, a training or its sandbox."""
        if processes := of_home(self.home):
            seed = len(self.state["events"])
            self.say(f"killed: {kill_any(processes, random.Random(seed))}, at {now_at(self.home)}")

    def measure(self) -> None:
        self.stay(20)
        used = shutil.disk_usage(self.disk).used / 2**20
        memory = {name: sum(map(unique_mib, self.tree(name))) for name in self.commands}
        sizes = {name: round(size) for name, size in ({"disk": used} | memory).items()}
        self.state["sizes"].append(sizes)
        self.say(f"MiB: {sizes}")

    def end(self) -> None:
        """End all that the day has started."""
        for name in reversed(self.commands):
            for process in self.tree(name)[:1]:
                process.terminate()
                with suppress(psutil.TimeoutExpired):
                    process.wait(60)
            self.kill(name)
        for process in of_home(self.home):
            with suppress(psutil.Error):
                process.kill()
        with suppress(subprocess.CalledProcessError):
            self.server.stop()
        shutil.rmtree(self.server.folder, ignore_errors=True)
        unmount(self.disk)
        self.file.unlink()


def session(process: psutil.Process) -> int:
    with suppress(ProcessLookupError):
        return os.getsid(process.pid)
    return 0


def unique_mib(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        return float(process.memory_full_info().uss / 2**20)
    return 0.0


def outside(folder: Path) -> None:
    """Around the host: an object store, a receiver of messages, and a user of the gateway."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    application, chance = DomainDispatcherApplication(create_backend_app), random.Random(1)

    def faulty(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        if chance.random() < float((folder / "faults").read_text()):
            start_response("503 Slow Down", [("Content-Length", "0")])  # HEAD has no body
            return []
        return application(environ, start_response)

    server = make_server("127.0.0.1", 0, faulty, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ |= AWS | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}"}
    import fsspec

    fsspec.filesystem("s3").mkdir("day")
    with receiver() as messages, (folder / "answers.jsonl").open("a") as answers:
        told = {name: os.environ[name] for name in ("AWS_ENDPOINT_URL", *AWS)}
        write_atomic(folder / "outside.json", json.dumps(told | {"DAY_RECEIVER": messages.url}))
        gateway = json.loads((folder / "day.json").read_text())["ports"][1]
        while True:
            try:
                status, reply = ask(f"http://127.0.0.1:{gateway}", max_tokens=4)
            except (OSError, ValueError):  # refused, cut
                status, reply = 0, {}
            row = {"status": status, "id": reply.get("id", "").removeprefix("chatcmpl-")}
            print(json.dumps(row), file=answers, flush=True)
            write_atomic(folder / "messages.json", json.dumps(messages.titles))
            time.sleep(0.3)
