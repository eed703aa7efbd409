"""Backups of a home at any fsspec URL, and homes from backups.

In: a home, its ledger, artifacts and databases. Out: objects by content hash, and a sealed index,
written last, which names them. A home that is restored from an index is the home of that moment.
"""
