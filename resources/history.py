"""The ledger's entries, next to the run records of its home."""

from __future__ import annotations

from artifacts.integrity import RESTORE
from resources.registry.ledger import Entry, Ledger, LedgerChanged
from resources.run_record import RunRecords, readable


def history_of(ledger: Ledger, runs: RunRecords) -> list[Entry]:
    """Return all entries, oldest first.

    Raises LedgerChanged, also for an empty ledger where a run has ended with a decision: it would
    make the next challenger the first champion.
    """
    history = ledger.history()
    if history or not (decided := [record.id for record in readable(runs) if record.decision]):
        return history
    raise LedgerChanged(
        f"{ledger.place}: the ledger has no entry, but {', '.join(decided[-3:])} ended with a "
        f"decision: {RESTORE}; nothing is promoted until then"
    )
