"""The MLflow registry: a projection of the ledger, for people and tools that use MLflow.

In: the ledger. Out: registered model `ratchet` with a version for each checkpoint that reached the
gate, its passport among the tags, and the aliases `champion`, `previous` and `challenger` (the last
one that reached the gate, whatever the decision). `project` may be killed at any point and
repeated: it only updates what differs, an alias moves without ever being absent, and a lost
`mlflow.db` is rebuilt.
MLflow is one SQLite file of the home, or a server.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts.atomic import write_atomic
from artifacts.hashing import MANIFEST, REMOVED
from artifacts.integrity import RESTORE
from resources.registry.ledger import Entry, Ledger, champion_of, previous_of

if TYPE_CHECKING:
    from mlflow import MlflowClient

MODEL = "ratchet"
HASH_TAG = "checkpoint_hash"
PASSPORT_TAG = "passport"
LONGEST_TAG = 100_000  # MLflow's own limit; a longer passport stays with the checkpoint only
PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
}  # give up after seconds, not minutes


class RegistryBehind(RuntimeError):
    """MLflow could not be updated. The ledger is intact, and the next projection catches up."""


def tracking_uri(home: Path, url: str = "") -> str:
    """Return the server, or the SQLite file that runs and versions share."""
    return url or f"sqlite:///{home.resolve() / 'mlflow.db'}"


class Registry:
    """The registry in MLflow.

    home: RATCHET_HOME. url: an MLflow server (`storage.mlflow`); empty: a file of the home.
    """

    def __init__(self, home: Path, url: str = "") -> None:
        self.home = home
        self.uri = tracking_uri(home, url)
        self.file = None if url else home / "mlflow.db"
        self._mark = home / "mlflow_follows.json"

    @property
    def server(self) -> str | None:
        """The address of the server, None for a file of the home."""
        return self.uri if self.uri.startswith("http") else None

    def run_page(self, run: str) -> str | None:
        """Return the address of the newest run of this name on the server, None without one.

        Raises RegistryBehind if the server does not respond.
        """
        with self._named_errors():
            client = self._client()
            experiments = [experiment.experiment_id for experiment in client.search_experiments()]
            name = run.replace("'", "")
            found = client.search_runs(
                experiments, f"attributes.run_name = '{name}'", max_results=1
            )
        return next(
            (
                f"{self.uri}/#/experiments/{run.info.experiment_id}/runs/{run.info.run_id}"
                for run in found
            ),
            None,
        )

    def sync(self, ledger: Ledger) -> dict[str, int]:
        """Sync MLflow with the ledger; return alias -> MLflow's version.

        Cheap where nothing differs; call it at each start and read. Raises RegistryBehind where
        MLflow cannot be updated, LedgerUnreachable where the ledger cannot be read.
        """
        if not ledger.history():
            return {}
        with ledger.sync_lock(), self._named_errors():
            # again: another process may have appended while this one waited
            history = ledger.history()
            client = self._client()
            known = self._versions(client)
            for entry in history:
                if entry.checkpoint_hash not in known:
                    known[entry.checkpoint_hash] = self._register(client, entry)
            expected = {
                alias: known[entry.checkpoint_hash] for alias, entry in aliases_of(history).items()
            }
            present = {
                alias: int(version)
                for alias, version in client.get_registered_model(MODEL).aliases.items()
            }
            for alias, version in expected.items():
                if present.get(alias) != version:
                    client.set_registered_model_alias(MODEL, alias, str(version))
            for alias in present.keys() - expected.keys():
                client.delete_registered_model_alias(MODEL, alias)
            mark = {"uri": self._place, "entry": history[-1].entry, "file": self._file_state()}
            write_atomic(self._mark, json.dumps(mark))
            return expected

    def is_synced(self, history: Sequence[Entry]) -> bool:
        """Return whether MLflow is a file that nothing has written since the last sync with this
        history. Does not import MLflow, which takes two seconds.
        """
        state = self._file_state()
        return bool(state) and not self.behind(history) and self._last_sync().get("file") == state

    def try_sync(self, ledger: Ledger) -> str:
        """Sync; return the reason why MLflow is behind, or an empty text.

        For use after the ledger has recorded a decision.
        """
        try:
            self.sync(ledger)
        except RegistryBehind as error:
            return str(error)
        return ""

    def behind(self, history: Sequence[Entry]) -> int:
        """Return how many entries MLflow lacks. Reads a small file and does not contact MLflow."""
        mark = self._last_sync()
        last = mark.get("entry", 0) if mark.get("uri") in (self._place, self.uri) else 0
        return sum(entry.entry > last for entry in history)

    @property
    def _place(self) -> str:
        """The MLflow that the last sync is compared with; the same in a copy of the home."""
        return self.file.name if self.file else self.uri

    def _last_sync(self) -> dict[str, Any]:
        """Return the record of the last sync; empty if there is none, or it cannot be read."""
        try:
            mark = json.loads(self._mark.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return mark if isinstance(mark, dict) else {}

    def _file_state(self) -> list[int]:
        """Return size and time of the last change of MLflow's file; empty without one."""
        if self.file is None or not self.file.exists():
            return []
        about = self.file.stat()
        return [about.st_size, about.st_mtime_ns]

    def damage(self) -> str:
        """Return what is wrong with the home's MLflow file, and the fix; "" if it is whole, or
        there is none. Does not import MLflow.
        """
        if self.file is None or not self.file.exists():
            return ""
        try:
            with closing(sqlite3.connect(self.file)) as connection:
                (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            found = "ok" if isinstance(error, sqlite3.OperationalError) else str(error)
        if found == "ok":
            return ""
        return (
            f"{self.file} is damaged ({' '.join(found.split())}): {RESTORE}, or "
            "delete it, and `ratchet registry` registers the versions again (the folders of the "
            "trainings keep their metrics)"
        )

    def aliases(self) -> dict[str, int]:
        """Return MLflow's aliases without syncing them."""
        if self.file and not self.file.exists():
            return {}
        with self._named_errors():
            models = self._client().search_registered_models(f"name = '{MODEL}'")
        return {alias: int(version) for model in models for alias, version in model.aliases.items()}

    def _register(self, client: MlflowClient, entry: Entry) -> int:
        """Register a version in one transaction: it exists with all its tags or not at all."""
        tags = {
            HASH_TAG: entry.checkpoint_hash,
            "checkpoint": entry.checkpoint,
            "ratchet_version": str(entry.version),
            "run_id": entry.run_id,
        }
        # The first decision about it, and where it is stored.
        tags |= {"gate": entry.kind, "path": entry.path}
        files = (Path(entry.path) / name for name in (MANIFEST, REMOVED))
        passport = next((file for file in files if file.is_file()), None)
        if passport and len(text := passport.read_text(encoding="utf-8")) < LONGEST_TAG:
            tags[PASSPORT_TAG] = text
        description = "\n".join(str(reason) for reason in entry.decision.get("reasons", []))
        # a server refuses paths of another machine
        source = f"ratchet:///checkpoints/{entry.checkpoint_hash}"
        return int(
            client.create_model_version(
                MODEL, source=source, tags=tags, description=description, await_creation_for=None
            ).version
        )

    def _versions(self, client: MlflowClient) -> dict[str, int]:
        """Return checkpoint hash -> MLflow's version.

        A duplicate version is deleted: a server may have created it after its client was killed.
        """
        if not client.search_registered_models(f"name = '{MODEL}'"):
            client.create_registered_model(
                MODEL, description="Promoted and refused checkpoints; the truth is the ledger."
            )
        versions: dict[str, list[int]] = {}
        token: str | None = None
        while True:
            page: Any = client.search_model_versions(f"name = '{MODEL}'", page_token=token)
            for version in page:
                if content_hash := version.tags.get(HASH_TAG):
                    versions.setdefault(content_hash, []).append(int(version.version))
            token = page.token
            if not token:
                break
        named = {int(version) for version in client.get_registered_model(MODEL).aliases.values()}
        for twice in (number for same in versions.values() for number in sorted(same)[1:]):
            if twice not in named:
                client.delete_model_version(MODEL, str(twice))
        return {content_hash: min(same) for content_hash, same in versions.items()}

    def _client(self) -> MlflowClient:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        for name, value in PATIENCE.items():
            os.environ.setdefault(name, value)
        logging.getLogger("mlflow.store.db.utils").setLevel(logging.WARNING)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        from mlflow import MlflowClient

        return MlflowClient(tracking_uri=self.uri, registry_uri=self.uri)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Convert the errors of MLflow and its database to RegistryBehind."""
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (MlflowException, SQLAlchemyError, OSError) as error:
            if damage := self.damage():
                raise RegistryBehind(damage) from error
            lines = [line for line in str(error).splitlines() if line.strip()] or [
                type(error).__name__
            ]
            raise RegistryBehind(
                f"MLflow at {self.uri} cannot be updated ({lines[0][:300]}). The ledger is "
                "complete; `ratchet registry` syncs MLflow when it is reachable"
            ) from error


def aliases_of(history: Sequence[Entry]) -> dict[str, Entry]:
    """Return alias -> its entry."""
    gated = [entry for entry in history if entry.kind != "rollback"]
    named = {
        "champion": champion_of(history),
        "previous": previous_of(history),
        "challenger": gated[-1] if gated else None,
    }
    return {alias: entry for alias, entry in named.items() if entry}
