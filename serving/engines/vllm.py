"""vLLM as a server process of its own for each version, on a GPU (`vllm serve`).

Install vLLM beside Ratchet, for example from `requirements-gpu.lock`. Options:
https://docs.vllm.ai/en/latest/cli/serve.html, adapters: .../features/lora.html.
"""

from __future__ import annotations

from resources.config.serving import Serving
from serving.engines import EngineKind
from serving.server_versions import Served, ServerProgram


def command_of(served: Served, settings: Serving, port: int) -> list[str]:
    """Return the command that serves a model on this port of the loopback."""
    lora = ("--enable-lora", "--max-lora-rank", str(served.rank), "--max-loras", "4")
    spread = ("--tensor-parallel-size", str(served.gpus))
    return [
        *("vllm", "serve", served.model),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--served-model-name", served.name),
        *("--max-num-seqs", str(settings.at_once)),
        *("--gpu-memory-utilization", f"{settings.gpu_share:g}"),
        # not the sampling settings in the checkpoint, which rollouts do not use either
        *("--generation-config", "vllm"),
        *(lora if served.rank else ()),
        *(spread if served.gpus > 1 else ()),
        "--disable-uvicorn-access-log",
    ]


SERVER = ServerProgram(
    command_of,
    adapter_model="{adapter}",
    load="/v1/load_lora_adapter",
    unload="/v1/unload_lora_adapter",
    environment={"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"},
)
ENGINE = EngineKind(SERVER)
