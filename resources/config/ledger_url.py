"""The URL of a ledger on a server."""

from __future__ import annotations

from urllib.parse import urlsplit


def check_url(url: str) -> None:
    """Raise ValueError unless the URL names a Postgres, without a password.

    A profile may be shown to others.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/"):
        raise ValueError(
            f"{parts.scheme or url}: a ledger is kept at "
            "postgresql://user@host:port/database, or empty: in RATCHET_HOME"
        )
    if parts.password:
        raise ValueError(
            "the ledger's URL holds a password: leave it out and set PGPASSWORD (or "
            "PGPASSFILE) in the environment"
        )
