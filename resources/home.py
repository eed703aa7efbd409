"""The folder RATCHET_HOME: paths of everything that a run writes, and a check of free space.

In: an environment variable or a path. Out: a `Home` of plain paths. Imports no Dagster, so that
`ratchet status` responds at once.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path

from artifacts.atomic import write_atomic
from artifacts.hashing import hash_data
from artifacts.home_paths import stored_path
from artifacts.store import Store
from resources.lease import LeasePlace
from resources.run_record import RunRecords

DEFAULT = ".ratchet"
FORMAT = "4"  # of a home's files; a change that an earlier home's files do not fit raises it
FORMAT_FILE = "format"
RESTORING = "restoring"  # the format of a home before its restore has ended


class NotReady(RuntimeError):
    """This machine or home cannot start a run. The message is one line and says what to do."""


@dataclass(frozen=True)
class Home:
    """The folder that holds everything a run writes.

    database: URL of the records on a server (`storage.ledger`); empty: files in the home.
    """

    path: Path
    database: str = ""

    @classmethod
    def from_environment(cls, *, unfinished: bool = False) -> Home:
        """Return RATCHET_HOME, else `.ratchet` in the current folder, as an absolute path.

        Raises NotReady if it is a file, or a home of another format, or one that is being restored
        and the caller does not expect one (`unfinished`).
        """
        path = Path(os.environ.get("RATCHET_HOME") or DEFAULT).expanduser().absolute()
        if path.exists() and not path.is_dir():
            raise NotReady(f"{path} is a file: set RATCHET_HOME to a folder")
        file = path / FORMAT_FILE
        written = file.read_text(encoding="utf-8").strip() if file.exists() else FORMAT
        if written == RESTORING and not unfinished:
            raise NotReady(
                f"{path} is not restored completely: run the same `ratchet restore` again"
            )
        if written not in (FORMAT, RESTORING):
            raise NotReady(
                f"{path} has format {written!r}, and this version reads {FORMAT!r}: use the "
                "version that wrote it, or set RATCHET_HOME to a new folder"
            )
        return cls(path)

    @property
    def profile_file(self) -> Path:
        return self.path / "profile"

    @property
    def profile(self) -> str:
        """The profile of commands that name none: the first one that was named; "" for none."""
        if not self.profile_file.is_file():
            return ""
        name = self.profile_file.read_text(encoding="utf-8").strip()
        here = self.path / name
        return str(here) if here.is_file() else name

    def stored(self, path: str) -> str:
        """Return a path as it is recorded in the home."""
        return stored_path(path, self.path) if Path(path).is_absolute() else path

    def store(self, root: str = "") -> Store:
        """Return the artifact store: this home, or a profile's `storage.root` with a cache here."""
        return (
            Store(root, cache=self.path / "cache" / hash_data(root.rstrip("/"))[:12])
            if root
            else Store(self.path)
        )

    @property
    def records(self) -> Path | str:
        """The database of runs, lease, lost tasks and API keys."""
        return self.database or self.path / "records.db"

    @property
    def runs(self) -> RunRecords:
        """The records of runs, and the folder with a run's files."""
        return RunRecords(self.path / "runs", self.records)

    @property
    def reports(self) -> Path:
        return self.path / "reports"

    @property
    def batteries(self) -> Path:
        """Results of the exploit battery, by the reward's hash."""
        return self.path / "batteries"

    @property
    def inbox(self) -> Path:
        """Checkpoint folders placed here by hand are copied, hashed and evaluated."""
        return self.path / "inbox"

    @property
    def problem_inbox(self) -> Path:
        """Files of problems placed here by hand become sources."""
        return self.path / "inbox_problems"

    @property
    def problem_files(self) -> Path:
        """Copies of these files, by content."""
        return self.path / "problem_files"

    @property
    def sources(self) -> Path:
        """Sources added by `ratchet data add`: name -> file."""
        return self.path / "sources.json"

    @property
    def ledger(self) -> Path | str:
        return self.database or self.path / "promotions.db"

    @property
    def gateways(self) -> Path:
        """One file for each gateway that runs on this home: what it has loaded."""
        return self.path / "gateways"

    @property
    def observations(self) -> Path:
        """Answered requests and feedback (serving/gateway/observations.py)."""
        return self.path / "observations.db"

    @property
    def candidates(self) -> Path:
        """Requests that may become training problems (serving/gateway/candidates.py)."""
        return self.path / "candidates.db"

    @property
    def api_keys(self) -> Path | str:
        """Hashes of the gateway's API keys."""
        return self.records

    @property
    def regressions(self) -> Path | str:
        """Tasks that a champion solved and a later one lost."""
        return self.records

    @property
    def lease(self) -> LeasePlace:
        return LeasePlace(self.records, self.path)

    @property
    def dagster(self) -> Path:
        return self.path / "dagster"

    def make(self) -> None:
        """Create the folder with its format. Raises NotReady where it is not writable."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.path):
                pass
            if not (self.path / FORMAT_FILE).exists():
                write_atomic(self.path / FORMAT_FILE, f"{FORMAT}\n")
        except OSError as error:
            raise NotReady(
                f"RATCHET_HOME {self.path} cannot be written to ({error.strerror}): set "
                "RATCHET_HOME to a folder of yours"
            ) from error

    @property
    def id(self) -> str:
        """The home's own name, which stays the same for each host, container or pod that opens it,
        and which no backup holds.
        """
        file = self.path / ".id"
        if not file.exists():
            write_atomic(file, uuid.uuid4().hex)
        return file.read_text(encoding="utf-8")

    def full(self) -> str:
        """Return the message for a write that failed because the disk is full."""
        return (
            f"the disk of {self.path} is full: free some space and run the same command, which "
            "resumes"
        )

    def check_capacity(self, *, disk_gib: float, memory_gib: float) -> None:
        """Raise NotReady unless this much disk and memory is available.

        Disk is free space under the home, memory is what the machine has available.
        """
        free = shutil.disk_usage(self.path).free / 2**30
        if free < disk_gib:
            raise NotReady(
                f"{self.path} has {free:.1f} GiB of free disk, a run needs {disk_gib:g}: free "
                "some, or set RATCHET_HOME to another disk"
            )
        available = available_memory_gib()
        if available < memory_gib:
            raise NotReady(
                f"{available:.1f} GiB of memory is available, a run needs {memory_gib:g}: "
                "close other programs, or use a smaller profile"
            )


def available_memory_gib() -> float:
    """Return the memory that this process may still use."""
    from verl_jobs.metrics.machine import available_bytes

    return available_bytes() / 2**30
