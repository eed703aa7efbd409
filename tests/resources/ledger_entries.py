"""Record decisions about imagined checkpoints."""

from __future__ import annotations

from resources.registry.ledger import Entry, Kind, Ledger


def put(
    ledger: Ledger,
    name: str,
    kind: Kind = "promote",
    run_id: str | None = None,
    against: Entry | None = None,
) -> Entry:
    compared = against or ledger.champion()
    return ledger.append(
        kind,
        checkpoint=name,
        checkpoint_hash=f"hash-{name}",
        path=f"/checkpoints/{name}",
        decision={"reasons": [name]},
        run_id=run_id or f"chain-{name}",
        against=compared.checkpoint_hash if compared else None,
    )
