"""The ledger's versions in memory, so that no request waits for a disk.

In: the ledger. Out: the entry of each version, the champion, the version before one.
"""

from __future__ import annotations

from dataclasses import dataclass

from resources.registry.ledger import Entry, Ledger, LedgerChanged, champions
from resources.registry.ledger_database import LedgerUnreachable
from serving.gateway.refusals import Refused

NO_CHAMPION = "no champion yet: run `ratchet demo` to train and promote one"


@dataclass(frozen=True)
class LoadFault:
    """A version could not be loaded. at: when the attempt began, in seconds since 1970; clock: the
    same on a clock that never goes back.
    """

    reason: str
    at: float
    clock: float


class Catalog:
    """The ledger's versions in memory.

    `read` is called from time to time; between two calls the versions stay as they were.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.entries: dict[int, Entry] = {}  # newest entry of each version
        self.stack: list[Entry] = []  # champions that can be restored, the present one last
        self.serving: Entry | None = None  # the champion that answers: `named` once it is loaded
        self.ledger_fault = NO_CHAMPION  # why the ledger names no champion
        self.faults: dict[int, LoadFault] = {}  # of the last attempt to load a version
        self.loaded: frozenset[int] = frozenset()  # versions that can answer
        self.out_of_service = ""  # why this gateway should get no requests, while others answer

    @property
    def fault(self) -> str:
        """Why the ledger's champion does not answer; "" if it does."""
        loaded = self.named is not None and self.serving is not None
        if loaded and self.named.version == self.serving.version:  # type: ignore[union-attr]
            return self.ledger_fault
        fault = self.faults.get(self.named.version) if self.named else None
        load_fault = fault.reason if fault else "the champion is being loaded"
        return self.ledger_fault or load_fault

    def read(self) -> None:
        """Read the ledger. If that fails, the versions stay, and `ledger_fault` has the reason."""
        try:
            history = self.ledger.history()
        except (LedgerChanged, LedgerUnreachable) as error:
            self.ledger_fault = str(error)
            return
        stack = champions(history)
        self.entries = {entry.version: entry for entry in history}
        self.entries |= {entry.version: entry for entry in stack}
        self.stack = stack
        self.ledger_fault = "" if stack else NO_CHAMPION

    @property
    def named(self) -> Entry | None:
        """The champion of the ledger."""
        return self.stack[-1] if self.stack else None

    def before(self, entry: Entry | None) -> Entry | None:
        """Return the champion before this one, which answers where this one fails."""
        versions = [each.version for each in self.stack]
        if entry is None or entry.version not in versions[1:]:
            return None
        return self.stack[versions.index(entry.version) - 1]

    def champion(self) -> int:
        """Return the version that answers as champion. Raises LookupError without one."""
        if self.serving is None:
            raise LookupError(self.fault)
        return self.serving.version

    def entry_of(self, model: str) -> Entry | None:
        """Return a version by its number or its checkpoint's name; None if there is none."""
        if model.isascii() and model.isdigit() and len(model) < 10:
            return self.entries.get(int(model))
        matches = [e for e in self.entries.values() if e.checkpoint == model]
        return max(matches, key=lambda entry: entry.version, default=None)

    def known(self, model: str) -> Entry:
        """Return a version by number or name. Raises Refused (404)."""
        entry = self.entry_of(model)
        if entry is None:
            message = f"unknown model {model[:80]!r}: use 'champion'; /v1/models lists the others"
            raise Refused(404, "model_not_found", message, param="model")
        return entry
