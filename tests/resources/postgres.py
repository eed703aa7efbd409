"""Start a real Postgres server for tests, with a database cluster in a temporary folder."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from resources.ray.head import free_ports

PASSWORD = "a secret of the tests"


@dataclass
class Server:
    """A running server. `url` names the database `postgres`; clients need PGPASSWORD."""

    folder: Path
    port: int
    programs: Path
    as_user: dict[str, Any]

    @property
    def url(self) -> str:
        return f"postgresql://ratchet@127.0.0.1:{self.port}/postgres"

    def control(self, *arguments: str) -> None:
        command = [str(self.programs / "pg_ctl"), "-D", str(self.folder / "data"), "-w", *arguments]
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self.as_user
        )

    def start(self, addresses: str = "127.0.0.1") -> None:
        options = f"-p {self.port} -c listen_addresses={addresses} -k '{self.folder}' -c fsync=off"
        self.control("start", "-l", str(self.folder / "log"), "-o", options)

    def listen(self, address: str, network: str) -> None:
        """Start again, with one more address, for clients of this network."""
        with (self.folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {network} scram-sha-256\n")
        self.stop()
        self.start(f"127.0.0.1,{address}")

    def stop(self) -> None:
        self.control("stop", "-m", "immediate")

    def fresh(self, name: str) -> str:
        """Create an empty database and return its URL."""
        import psycopg2

        connection = psycopg2.connect(self.url)
        connection.autocommit = True
        connection.cursor().execute(f'CREATE DATABASE "{name}"')
        connection.close()
        return f"{self.url.removesuffix('postgres')}{name}"


def sweep(folder: Path = Path("/tmp")) -> None:
    """End the servers of test runs that were killed, and remove their folders."""
    for left in folder.glob("ratchet-pg-*"):
        match = re.fullmatch(r"ratchet-pg-(\d+)-.*", left.name)
        if match is None or psutil.pid_exists(int(match[1])):
            continue
        with suppress(OSError, ValueError, IndexError, psutil.NoSuchProcess):
            server = int((left / "data" / "postmaster.pid").read_text().splitlines()[0])
            if str(left) in " ".join(psutil.Process(server).cmdline()):  # not a reused number
                psutil.Process(server).kill()
        shutil.rmtree(left, ignore_errors=True)


def installed(folder: Path, port: int) -> Server:
    """Return the server of a cluster in this folder, whose path is short because a socket is in it.
    Skip the test if Postgres or a user to run it as is missing.
    """
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [
        Path(path).parent for path in [shutil.which("initdb")] if path
    ]
    if not programs:
        pytest.skip("Postgres is not installed (apt-get install postgresql)")
    as_user: dict[str, Any] = {}
    if os.geteuid() == 0:  # Postgres refuses to run as root
        owner = next(
            (user for user in pwd.getpwall() if user.pw_name in ("postgres", "nobody")), None
        )
        if owner is None:
            pytest.skip("Postgres does not run as root, and there is no user postgres or nobody")
        as_user = {"user": owner.pw_uid, "group": owner.pw_gid}
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    return Server(folder, port, programs[-1], as_user)


def cluster(folder: Path) -> Server:
    """Make a cluster in an empty folder, and start its server on a free port."""
    server = installed(folder, free_ports(1)[0])
    (folder / "password").write_text(PASSWORD)
    (folder / "password").chmod(0o644)
    command = [
        str(server.programs / "initdb"),
        "-D",
        str(folder / "data"),
        "-U",
        "ratchet",
        "-A",
        "scram-sha-256",
        "--no-sync",
        "--no-locale",
        f"--pwfile={folder / 'password'}",
    ]
    subprocess.run(command, check=True, capture_output=True, cwd=folder, **server.as_user)
    server.start()
    return server


@contextmanager
def postgres() -> Iterator[Server]:
    """Run a server, in a new folder."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"ratchet-pg-{os.getpid()}-", dir="/tmp"))
    try:
        server = cluster(folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PGPASSWORD", PASSWORD)
            yield server
        if (folder / "data" / "postmaster.pid").exists():
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
