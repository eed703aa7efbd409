"""Weights through a TCP store: what arrives, and who can reach it."""

from __future__ import annotations

import asyncio
import socket

import pytest
import torch

from verl_jobs.cpu.weights import CHUNK, TcpWeights


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def test_weights_arrive_bit_for_bit_by_one_address_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.util.get_node_ip_address", lambda: "127.0.0.1")
    trainer, engine = TcpWeights(0, is_master=True), TcpWeights(0)
    place = trainer.prepare()
    engine.init_process_group(place)
    sent = {
        "one": torch.tensor(float("nan")),
        "half": torch.rand(3, 5).bfloat16(),
        "large": torch.rand(CHUNK // 4 + 7),
    }
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", place["port"]), 5)

    async def transfer() -> dict[str, torch.Tensor]:
        await trainer.send_weights(sent.items())
        return {name: tensor async for name, tensor in engine.receive_weights()}

    received = asyncio.run(transfer())
    assert received.keys() == sent.keys()
    for name, tensor in sent.items():
        assert received[name].dtype == tensor.dtype
        assert received[name].shape == tensor.shape
        assert torch.equal(bits(received[name]), bits(tensor))
