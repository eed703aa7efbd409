"""Keep the champion's model loaded, and replace it as soon as the ledger names another champion.

In: the ledger and a function that opens a checkpoint. Out: the champion's entry with an engine that
holds its weights.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock

from artifacts.integrity import CorruptArtifact, check_champion
from resources.registry.ledger import Entry, Ledger, LedgerChanged
from serving.engines import Engine


class NoChampion(LookupError):
    """There is no champion to serve; the message has the reason and the fix."""


class Champion:
    """open_engine: checkpoint folder -> engine. It may take long, and runs in the thread of the
    first request.
    """

    def __init__(self, ledger: Ledger, open_engine: Callable[[Path], Engine]) -> None:
        self.ledger = ledger
        self.open_engine = open_engine
        # Hash of the checkpoint, and the engine that holds its weights.
        self._loaded: tuple[str, Engine] | None = None
        self._loading = Lock()

    def entry(self) -> Entry:
        """The champion's entry, read from the ledger now. Raises NoChampion."""
        try:
            entry = self.ledger.champion()
        except LedgerChanged as error:
            raise NoChampion(str(error)) from error
        if entry is None:
            raise NoChampion("no champion yet: run `ratchet demo` to train and promote one")
        return entry

    def engine(self) -> tuple[Entry, Engine]:
        """Return the current champion and its engine. The previous weights are released after their
        last request. Raises NoChampion.
        """
        with self._loading:
            entry = self.entry()
            if self._loaded is None or self._loaded[0] != entry.checkpoint_hash:
                self._loaded = None
                self._loaded = (entry.checkpoint_hash, self._open(entry))
            return entry, self._loaded[1]

    def _open(self, entry: Entry) -> Engine:
        path = Path(entry.path)
        try:
            check_champion(path, entry.checkpoint_hash, path.with_name(f".{path.name}.files.json"))
            return self.open_engine(path)
        except CorruptArtifact as error:
            raise NoChampion(str(error)) from error
        except (OSError, ValueError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise NoChampion(
                f"cannot load the champion {entry.checkpoint} from {entry.path} "
                f"({reason}): restore the folder, or run `ratchet rollback`"
            ) from error
