"""The outcome of a decision in words. In: the ledger's entries. Out: a phrase."""

from __future__ import annotations

from collections.abc import Sequence

from resources.registry.ledger import Entry, champions


def outcome(history: Sequence[Entry], entry: Entry) -> str:
    """Return the outcome of a decision in words, and whether it was rolled back later."""
    first = {
        "install": "installed as the first",
        "promote": "promoted",
        "refuse": "not promoted",
        "rollback": "restored",
    }[entry.kind]
    if entry.kind == "refuse" or entry.version in {each.version for each in champions(history)}:
        return first
    same = {each.entry for each in history if each.version == entry.version}
    undone = [each for each in history if same & {*each.decision.get("undone_entries", [])}][-1]
    return f"{first}, rolled back by entry {undone.entry} ({undone.created_at[:10]})"
