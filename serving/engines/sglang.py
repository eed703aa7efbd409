"""SGLang as a server process of its own for each version, on a GPU (`sglang serve`).

Install SGLang beside Ratchet. Options, checked against its release 0.5.23:
https://docs.sglang.io/advanced_features/server_arguments.html, adapters: .../lora.html.
"""

from __future__ import annotations

from resources.config.serving import Serving
from serving.engines import EngineKind
from serving.server_versions import Served, ServerProgram


def command_of(served: Served, settings: Serving, port: int) -> list[str]:
    """Return the command that serves a model on this port of the loopback."""
    lora = ("--enable-lora", "--max-lora-rank", str(served.rank), "--lora-target-modules", "all")
    spread = ("--tensor-parallel-size", str(served.gpus))
    return [
        *("sglang", "serve", "--model-path", served.model),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--served-model-name", served.name),
        *("--max-running-requests", str(settings.at_once)),
        *("--mem-fraction-static", f"{settings.gpu_share:g}"),
        # not the sampling settings in the checkpoint, which rollouts do not use either
        *("--sampling-defaults", "openai"),
        *(lora if served.rank else ()),
        *(spread if served.gpus > 1 else ()),
        *("--log-level-http", "warning"),
    ]


SERVER = ServerProgram(
    command_of,
    adapter_model="{base}:{adapter}",
    load="/load_lora_adapter",
    unload="/unload_lora_adapter",
)
ENGINE = EngineKind(SERVER)
