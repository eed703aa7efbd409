"""Weights from the trainer to engines in other processes, without a GPU: verl's checkpoint engine
"tcp".

verl 0.9.1 has NCCL, NIXL and others, all for accelerators. In: the trainer's weights, gathered by
all its ranks together. Rank 0 puts them into a TCP store of torch, from which each engine's worker
reads them. For small models: everything passes through the memory of rank 0.
"""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Iterable
from math import prod
from typing import Any

import ray
import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # documented
from verl.checkpoint_engine.base import CheckpointEngine, CheckpointEngineRegistry

BACKEND = "tcp"
CHUNK = 4 << 20  # bytes of one entry; torch's store takes at most 8 MiB
INDEX = "index"


@CheckpointEngineRegistry.register(BACKEND)
class TcpWeights(CheckpointEngine):  # type: ignore[misc]  # verl has no types
    """One worker's end. is_master: whether it is rank 0 of the trainer."""

    def __init__(self, bucket_size: int, is_master: bool = False) -> None:
        self.is_master = is_master
        self.store: TCPStore | None = None

    def prepare(self) -> dict[str, Any]:
        """Open the store on rank 0; return where it is."""
        if not self.is_master:
            return {}
        host = ray.util.get_node_ip_address()
        # The store would listen on every address of the machine, and ask nobody who they are.
        listener = socket.create_server((host, 0))
        port = listener.getsockname()[1]
        self.store = TCPStore(
            host, port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach()
        )
        return {"host": host, "port": port}

    @classmethod
    def build_topology(
        cls, actor_wg_world_size: int, rollout_world_size: int, metadata: list[dict[str, Any]]
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        return {"place": [{}] * actor_wg_world_size}, {"place": [metadata[0]] * rollout_world_size}

    def init_process_group(self, place: dict[str, Any]) -> None:
        if place:
            self.store = TCPStore(place["host"], place["port"], is_master=False)

    def finalize(self) -> None:
        self.store = None

    async def send_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]], global_steps: int | None = None
    ) -> None:
        index = []
        for name, tensor in weights:  # on every rank, since gathering one is a collective
            if not self.is_master:
                continue
            assert self.store
            content = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
            index.append([name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape)])
            for start in range(0, len(content), CHUNK):
                chunk = content[start : start + CHUNK].tobytes()
                self.store.set(_key(name, start), chunk)  # type: ignore[arg-type]  # bytes too
        if self.store:
            self.store.set(INDEX, json.dumps(index))

    async def receive_weights(
        self, global_steps: int | None = None
    ) -> AsyncIterator[tuple[str, torch.Tensor]]:
        assert self.store
        for name, dtype_name, shape in json.loads(self.store.get(INDEX)):
            dtype: torch.dtype = getattr(torch, dtype_name)
            size = prod(shape) * dtype.itemsize
            content = b"".join(self.store.get(_key(name, at)) for at in range(0, size, CHUNK))
            yield name, torch.frombuffer(bytearray(content), dtype=dtype).view(shape)


def _key(name: str, start: int) -> str:
    return f"{name}/{start}"
