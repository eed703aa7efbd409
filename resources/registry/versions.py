"""Find a version by what a person calls it: its number, an alias, a checkpoint's name, a hash."""

from __future__ import annotations

from collections.abc import Sequence

from resources.registry.ledger import Entry
from resources.registry.mlflow import aliases_of

ALIASES = ("champion", "previous", "challenger")


class UnknownVersion(LookupError):
    """No decision is about a version of this name; the message lists the known ones."""


def find(history: Sequence[Entry], name: str) -> list[Entry]:
    """Return all decisions about a version, without rollbacks to it. Raises UnknownVersion.

    name: a number (3, v3), an alias, a checkpoint's name, or the beginning of its hash.
    """
    decisions = [entry for entry in history if entry.kind != "rollback"]
    content = alias.checkpoint_hash if (alias := aliases_of(history).get(name)) else None
    number = int(name.removeprefix("v")) if name.removeprefix("v").isdigit() else None

    def matches(entry: Entry) -> bool:
        begins = len(name) >= 6 and entry.checkpoint_hash.startswith(name)
        return (
            entry.version == number
            or entry.checkpoint == name
            or entry.checkpoint_hash == content
            or begins
        )

    if entries := [entry for entry in decisions if matches(entry)]:
        return entries
    known_versions = ", ".join(
        dict.fromkeys(f"{entry.version} ({entry.checkpoint})" for entry in decisions[::-1])
    )
    raise UnknownVersion(
        f"no version {name!r}: known versions are {known_versions or 'none yet'}; `ratchet promote "
        "CHECKPOINT` decides on another"
    )
