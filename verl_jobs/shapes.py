"""What is planned with: the shapes of models, the GPUs that are known.

In: a hub id or a folder. Out: its `Shape`, or DoesNotFit that says what can be planned.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from verl_jobs.lora import Lora

GIB = 2**30


@dataclass(frozen=True)
class Shape:
    """A decoder of Qwen2's kind (grouped-query attention, gated MLP, biases on query, key and value)."""

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int
    tied: bool

    @property
    def kv_width(self) -> int:
        """Of keys, and of values, in numbers a token and layer."""
        return self.hidden // self.heads * self.kv_heads

    @property
    def parameters(self) -> int:
        h, kv = self.hidden, self.kv_width
        layer = 2 * h * h + 2 * h * kv + (h + 2 * kv) + 3 * h * self.intermediate + 2 * h
        return self.vocabulary * h * (1 if self.tied else 2) + self.layers * layer + h

    def learned(self, lora: Lora | None) -> int:
        """How many numbers have a gradient: all, or those of the adapters, rank (in + out) a layer that wears one."""
        if lora is None:
            return self.parameters
        h, kv, wide = self.hidden, self.kv_width, self.intermediate
        sides = {
            "q_proj": 2 * h,
            "k_proj": h + kv,
            "v_proj": h + kv,
            "o_proj": 2 * h,
            "gate_proj": h + wide,
            "up_proj": h + wide,
            "down_proj": h + wide,
        }
        return self.layers * lora.rank * sum(sides[name] for name in (lora.modules or sides) if name in sides)

    def kv_bytes(self) -> int:
        """Of one token's KV cache in bfloat16."""
        return 2 * 2 * self.layers * self.kv_width


@dataclass(frozen=True)
class Gpu:
    """Memory in bytes, dense bfloat16 FLOP/s and bytes/s of memory, as its maker states them."""

    name: str
    memory: int
    flops: float
    bandwidth: float


QWEN = "Qwen/Qwen2.5-Coder-"
SHAPES = {
    shape.name: shape
    for shape in (
        Shape(f"{QWEN}0.5B", 896, 24, 14, 2, 4864, 151_936, True),
        Shape(f"{QWEN}1.5B", 1536, 28, 12, 2, 8960, 151_936, True),
        Shape(f"{QWEN}3B", 2048, 36, 16, 2, 11_008, 151_936, True),
        Shape(f"{QWEN}7B", 3584, 28, 28, 4, 18_944, 152_064, False),
        Shape(f"{QWEN}14B", 5120, 48, 40, 8, 13_824, 152_064, False),
        Shape(f"{QWEN}32B", 5120, 64, 40, 8, 27_648, 152_064, False),
    )
}
GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("RTX4090", 24 * GIB, 165e12, 1.01e12),
        Gpu("L40S", 48 * GIB, 362e12, 0.86e12),
        Gpu("A100-40", 40 * GIB, 312e12, 1.56e12),
        Gpu("A100-80", 80 * GIB, 312e12, 2.04e12),
        Gpu("H100", 80 * GIB, 989e12, 3.35e12),
        Gpu("H200", 141 * GIB, 989e12, 4.8e12),
        Gpu("B200", 180 * GIB, 2250e12, 7.7e12),
    )
}


class DoesNotFit(ValueError):
    """No configuration fits; the message has what is needed and what is there."""


def shape_of(model: str) -> Shape:
    """The shape of a known hub id (an `-Instruct` of it too), or of a folder's config.json. Raises DoesNotFit naming what is known."""
    known = SHAPES.get(model.removesuffix("-Instruct"))
    path = Path(model) / "config.json"
    if known or not path.is_file():
        if known is None:
            raise DoesNotFit(f"no shape is known of {model!r}: give a folder with its config.json, or one of {', '.join(SHAPES)}")
        return replace(known, name=model)
    about = json.loads(path.read_text(encoding="utf-8"))
    try:
        return Shape(
            model, about["hidden_size"], about["num_hidden_layers"], about["num_attention_heads"], about["num_key_value_heads"],
            about["intermediate_size"], about["vocab_size"], bool(about.get("tie_word_embeddings", False)),
        )  # fmt: skip
    except KeyError as error:
        raise DoesNotFit(f"{path}: key {error} is missing: only dense decoders of Qwen2's and Llama's kind can be planned") from error
