"""The MLflow registry: a projection of the ledger, for people and tools that look there.

In: the ledger. Out: registered model `ratchet` with a version for each checkpoint that came to the gate, and the aliases `champion`, `previous`
and `challenger` (the last that came to the gate, whatever came of it). `project` may be killed at any point and repeated; it only mends what differs,
and a lost `mlflow.db` is made anew. Everything lies under the home folder; nothing listens and nothing is sent.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resources.ledger import Entry, Ledger

if TYPE_CHECKING:
    from mlflow import MlflowClient

MODEL = "ratchet"
HASH_TAG = "checkpoint_hash"


def tracking_uri(home: Path) -> str:
    """The SQLite file that runs and versions share."""
    return f"sqlite:///{home.resolve() / 'mlflow.db'}"


class Registry:
    """home: RATCHET_HOME."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def project(self, ledger: Ledger) -> dict[str, int]:
        """Makes MLflow say what the ledger says; returns alias -> MLflow's version. Cheap where nothing differs; call it at each start and read."""
        history = ledger.history()
        if not history:
            return {}
        with self._locked():
            client = self._client()
            known = self._versions(client)
            for entry in history:
                if entry.checkpoint_hash not in known:
                    known[entry.checkpoint_hash] = self._register(client, entry)
            wanted = {alias: known[entry.checkpoint_hash] for alias, entry in _aliases(ledger, history).items()}
            present = {alias: int(version) for alias, version in client.get_registered_model(MODEL).aliases.items()}
            for alias, version in wanted.items():
                if present.get(alias) != version:
                    client.set_registered_model_alias(MODEL, alias, str(version))
            for alias in present.keys() - wanted.keys():
                client.delete_registered_model_alias(MODEL, alias)
            return wanted

    def aliases(self) -> dict[str, int]:
        """What MLflow says, without mending it."""
        if not (self.home / "mlflow.db").exists():
            return {}
        models = self._client().search_registered_models(f"name = '{MODEL}'")
        return {alias: int(version) for model in models for alias, version in model.aliases.items()}

    def _register(self, client: MlflowClient, entry: Entry) -> int:
        """One transaction in MLflow: a version is there with its tags or not at all."""
        tags = {HASH_TAG: entry.checkpoint_hash, "checkpoint": entry.checkpoint, "ratchet_version": str(entry.version), "chain": entry.chain}
        tags["gate"] = entry.kind  # what came of it the first time
        description = "\n".join(str(reason) for reason in entry.decision.get("reasons", []))
        return int(client.create_model_version(MODEL, source=entry.path, tags=tags, description=description, await_creation_for=None).version)

    def _versions(self, client: MlflowClient) -> dict[str, int]:
        """checkpoint hash -> MLflow's version, the first where there are several."""
        if not client.search_registered_models(f"name = '{MODEL}'"):
            client.create_registered_model(MODEL, description="Promoted and refused checkpoints; the truth is promotions.db.")
        found: dict[str, int] = {}
        token: str | None = None
        while True:
            page: Any = client.search_model_versions(f"name = '{MODEL}'", page_token=token)
            for version in page:
                made = int(version.version)
                if content_hash := version.tags.get(HASH_TAG):
                    found[content_hash] = min(made, found.get(content_hash, made))
            token = page.token
            if not token:
                return found

    def _client(self) -> MlflowClient:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        logging.getLogger("mlflow.store.db.utils").setLevel(logging.WARNING)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        from mlflow import MlflowClient

        return MlflowClient(tracking_uri=tracking_uri(self.home), registry_uri=tracking_uri(self.home))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One projection at a time, so that none registers a checkpoint twice; a killed one holds no lock."""
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "mlflow.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _aliases(ledger: Ledger, history: list[Entry]) -> dict[str, Entry]:
    gated = [entry for entry in history if entry.kind != "rollback"]
    named = {"champion": ledger.champion(), "previous": ledger.previous(), "challenger": gated[-1] if gated else None}
    return {alias: entry for alias, entry in named.items() if entry is not None}
