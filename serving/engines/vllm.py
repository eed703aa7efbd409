"""vLLM as a server process of its own for each version, on a GPU (`vllm serve`).

Install vLLM beside Ratchet, for example from `requirements-gpu.lock`. Options:
https://docs.vllm.ai/en/latest/cli/serve.html.
"""

from __future__ import annotations

import socket

from resources.config.serving import Serving
from resources.registry.ledger import Entry
from serving.server_process import ServerProcess


def command_of(entry: Entry, settings: Serving, port: int) -> list[str]:
    """Return the command that serves a version on this port of the loopback."""
    return [
        *("vllm", "serve", entry.path),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--served-model-name", entry.checkpoint),
        *("--max-num-seqs", str(settings.at_once)),
        *("--gpu-memory-utilization", f"{settings.gpu_share:g}"),
        "--disable-uvicorn-access-log",
    ]


def open_version(entry: Entry, settings: Serving) -> ServerProcess:
    """Raises EngineFailed, also where vLLM is not installed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return ServerProcess(command_of(entry, settings, port), port, entry.checkpoint, "/health")


ENGINE = open_version
