"""The outcome of a decision in words. In: the ledger's entries. Out: a phrase."""

from __future__ import annotations

from collections.abc import Sequence

from resources.registry.ledger import Entry


def outcome(history: Sequence[Entry], entry: Entry) -> str:
    """Return the outcome of a decision in words, and whether it was rolled back later."""
    first = {
        "install": "installed as the first",
        "promote": "promoted",
        "refuse": "not promoted",
        "rollback": "restored",
    }[entry.kind]
    later = [other for other in history if other.entry > entry.entry]
    undone = next(
        (
            other
            for other in later
            if entry.entry in other.decision.get("undone_entries", [other.decision.get("undone")])
        ),
        None,
    )
    if undone:
        return f"{first}, rolled back by entry {undone.entry} ({undone.created_at[:10]})"
    return first
