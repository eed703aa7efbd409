"""Inputs of the planner: shapes of models, and known GPUs.

In: a hub id, a folder or a GGUF file. Out: its `Shape`, or DoesNotFit that names the supported
models.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verl_jobs.config.lora import Lora
from verl_jobs.gguf.header import read_header
from verl_jobs.gguf.source import find, names_gguf
from verl_jobs.sft.start import UnfitStart

GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """A dense decoder of Qwen2's kind.

    It has grouped-query attention, a gated MLP, and biases on query, key and value. Llama, Mistral
    and Qwen3 have other small vectors instead, 0.01 % of the parameters.
    """

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int
    tied: bool
    head: int = 0  # width of one head; 0: hidden / heads

    @property
    def q_width(self) -> int:
        """Width of the queries, in numbers per token and layer."""
        return self.heads * (self.head or self.hidden // self.heads)

    @property
    def kv_width(self) -> int:
        """Width of the keys, and of the values, in numbers per token and layer."""
        return self.kv_heads * (self.head or self.hidden // self.heads)

    @property
    def parameters(self) -> int:
        h, q, kv = self.hidden, self.q_width, self.kv_width
        layer = 2 * h * q + 2 * h * kv + (q + 2 * kv) + 3 * h * self.intermediate + 2 * h
        return self.vocabulary * h * (1 if self.tied else 2) + self.layers * layer + h

    def learned(self, lora: Lora | None) -> int:
        """Return how many parameters have a gradient.

        All of them, or those of the adapters: rank (in + out) for each adapted layer.
        """
        if lora is None:
            return self.parameters
        h, q, kv, wide = self.hidden, self.q_width, self.kv_width, self.intermediate
        sides = {
            "q_proj": h + q,
            "k_proj": h + kv,
            "v_proj": h + kv,
            "o_proj": q + h,
            "gate_proj": h + wide,
            "up_proj": h + wide,
            "down_proj": h + wide,
        }
        return (
            self.layers
            * lora.rank
            * sum(sides[name] for name in (lora.modules or sides) if name in sides)
        )

    def kv_bytes(self) -> int:
        """Return the bytes of one token's KV cache in bfloat16."""
        return 2 * 2 * self.layers * self.kv_width


@dataclass(frozen=True)
class Gpu:
    """A GPU's figures, as stated by its maker.

    Memory in bytes, dense bfloat16 FLOP/s, and memory bandwidth in bytes/s. `share` is not the
    maker's: the part of the speed that updates reach, recomputation included (seconds.py).
    """

    name: str
    memory: int
    flops: float
    bandwidth: float
    share: float = 0.46


QWEN = "Qwen/Qwen2.5-Coder-"


def _qwen(
    size: str, *, hidden: int, layers: int, heads: int, kv_heads: int, wide: int, tied: bool = False
) -> ModelShape:
    return ModelShape(
        name=f"{QWEN}{size}",
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        intermediate=wide,
        vocabulary=151_936 if tied else 152_064,
        tied=tied,
    )


SHAPES = {
    shape.name: shape
    for shape in (
        _qwen("0.5B", hidden=896, layers=24, heads=14, kv_heads=2, wide=4864, tied=True),
        _qwen("1.5B", hidden=1536, layers=28, heads=12, kv_heads=2, wide=8960, tied=True),
        _qwen("3B", hidden=2048, layers=36, heads=16, kv_heads=2, wide=11_008, tied=True),
        _qwen("7B", hidden=3584, layers=28, heads=28, kv_heads=4, wide=18_944),
        _qwen("14B", hidden=5120, layers=48, heads=40, kv_heads=8, wide=13_824),
        _qwen("32B", hidden=5120, layers=64, heads=40, kv_heads=8, wide=27_648),
    )
}
GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("RTX4090", 24 * GIB, 165e12, 1.01e12),
        Gpu("L40S", 48 * GIB, 362e12, 0.86e12),
        Gpu("A100-40", 40 * GIB, 312e12, 1.56e12),
        Gpu("A100-80", 80 * GIB, 312e12, 2.04e12),
        Gpu("H20", 96 * GIB, 148e12, 4.0e12, share=0.8),
        Gpu("H100", 80 * GIB, 989e12, 3.35e12),
        Gpu("H200", 141 * GIB, 989e12, 4.8e12),
        Gpu("B200", 180 * GIB, 2250e12, 7.7e12),
    )
}


KINDS = ("qwen2", "qwen3", "llama", "mistral")  # values of config.json's model_type
SIZES = {  # keys of config.json, and the fields that they become
    "hidden_size": "hidden",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "num_key_value_heads": "kv_heads",
    "intermediate_size": "intermediate",
    "vocab_size": "vocabulary",
}


class DoesNotFit(ValueError):
    """No configuration fits; the message has the required and the available amounts."""


class UnknownShape(DoesNotFit):
    """The model is unknown, or its config.json cannot be read."""


def shape_of(model: str) -> ModelShape:
    """Return the shape of a known hub id (also of its `-Instruct`), of a folder's config.json, or
    of a GGUF file.

    Raises UnknownShape that names the known models.
    """
    known = SHAPES.get(model.removesuffix("-Instruct"))
    if known:
        return replace(known, name=model)
    if names_gguf(model):
        return _of_gguf(model)
    path = Path(model) / "config.json"
    if not model:
        raise UnknownShape(
            "this profile creates its own model: name another with --model, a hub id, a folder or "
            "gguf:PATH"
        )
    if not path.is_file():
        raise UnknownShape(
            f"unknown model {model!r}: name a folder with its config.json, or one of "
            f"{', '.join(SHAPES)}"
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UnknownShape(f"cannot read {path} ({error}): download the model again") from error
    kind = config.get("model_type") if isinstance(config, dict) else None
    if kind not in KINDS:
        raise UnknownShape(
            f"{path}: model_type is {kind!r}; the planner supports dense decoders: "
            f"{', '.join(KINDS)}"
        )
    values: dict[str, Any] = {key: config.get(key) for key in SIZES}
    values["head_dim"] = config.get("head_dim") or 0
    wrong = [
        key for key, value in values.items() if type(value) is not int or value < (key in SIZES)
    ]
    if wrong:
        raise UnknownShape(
            f"{path}: {', '.join(f'{key} is {values[key]!r}' for key in wrong)}: a whole number "
            "above 0 is needed"
        )
    return ModelShape(
        name=model,
        tied=bool(config.get("tie_word_embeddings", False)),
        head=values["head_dim"],
        **{field: values[key] for key, field in SIZES.items()},
    )


def _of_gguf(base: str) -> ModelShape:
    try:
        header = read_header(find(base).path)
        heads, kv_heads = header.heads
        return ModelShape(
            name=base,
            hidden=header.need("embedding_length"),
            layers=header.need("block_count"),
            heads=heads,
            kv_heads=kv_heads,
            intermediate=header.need("feed_forward_length"),
            vocabulary=header.shape("token_embd.weight")[0],
            tied=header.tied,
            head=header.head,
        )
    except UnfitStart as error:
        raise UnknownShape(str(error)) from None
