"""Any OpenAI-compatible server as an engine, for example another gateway.

Its address is `serving.upstream`, its key the environment variable RATCHET_UPSTREAM_KEY. The
server's weights cannot be compared with the ledger's.
"""

from __future__ import annotations

import os

from resources.config.serving import Serving
from resources.registry.ledger import Entry
from serving.engines import EngineKind
from serving.upstream import Upstream


def open_version(entry: Entry, settings: Serving) -> Upstream:
    """Raises ValueError without an address."""
    if not settings.upstream:
        raise ValueError("the engine openai needs serving.upstream, the server's address up to /v1")
    name = settings.upstream_model or entry.checkpoint
    return Upstream(settings.upstream, name, os.environ.get("RATCHET_UPSTREAM_KEY", ""))


ENGINE = EngineKind(open_version)
