"""The weights of a checkpoint for other programs: `.safetensors` in the model's own precision.

verl trains in fp32 whatever the model's precision is. In: the sharded state of one rank. Out: this
rank's part of the model; each rank writes a file of about the same size, in Hugging Face's layout.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from artifacts.tensors import RawTensor
from verl_jobs.config.lora import is_adapter

if TYPE_CHECKING:
    from torch import Tensor, dtype
    from torch.nn import Module

DTYPES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}  # of models that are trained
# of their buffers
OTHERS = {"float64": "F64", "int64": "I64", "int32": "I32", "uint8": "U8", "bool": "BOOL"}
INDEX = "model.safetensors.index.json"


class RankPart(NamedTuple):
    """What one rank writes of the model."""

    file: str
    tensors: dict[str, Tensor]
    contents: str  # the text of Hugging Face's index; empty for a model of one file


def own_precision(model: Path) -> dtype:
    """Return the precision in which a model's weights are stored, by its configuration."""
    import torch

    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    name = config.get("dtype") or config.get("torch_dtype") or "float32"
    return getattr(torch, name) if name in DTYPES else torch.float32


def aliases(module: Module) -> set[str]:
    """Return the further names of shared parameters, e.g. of a head tied to the embedding.

    transformers does not tie them again if a file has both.
    """
    seen: set[int] = set()
    return {
        name
        for name, parameter in module.named_parameters(remove_duplicate=False)
        if id(parameter) in seen or seen.add(id(parameter))  # type: ignore[func-returns-value]
    }


def gather_part(
    state: Mapping[str, Any], skip: Iterable[str], precision: dtype, rank: int, ranks: int
) -> RankPart:
    """Return the part of this rank, in host memory. All ranks call it together.

    state: of all parameters, sharded; skip: names to leave out. Adapters keep their precision until
    they are merged (verl_jobs/config/lora.py).
    """
    sizes = [0] * ranks
    owner: dict[str, int] = {}
    tensors: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if name in skip:
            continue
        if tensor.is_floating_point() and not is_adapter(name):
            tensor = tensor.to(precision)  # before it is gathered: half the traffic
        owner[name] = sizes.index(min(sizes))
        sizes[owner[name]] += tensor.nbytes
        whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        if owner[name] == rank:
            tensors[name] = whole.detach().to("cpu", copy=True)
    used = sum(size > 0 for size in sizes)
    if used == 1:
        return RankPart("model.safetensors", tensors, "")
    files = {name: f"model-{each + 1:05}-of-{used:05}.safetensors" for name, each in owner.items()}
    index = {"metadata": {"total_size": sum(sizes)}, "weight_map": files}
    return RankPart(f"model-{rank + 1:05}-of-{used:05}.safetensors", tensors, json.dumps(index))


def raw(tensors: Mapping[str, Tensor]) -> dict[str, RawTensor]:
    """Return the tensors as their bytes."""
    import torch

    def one(tensor: Tensor) -> RawTensor:
        flat = tensor.contiguous().view(-1).view(torch.uint8)
        dtype = (DTYPES | OTHERS)[str(tensor.dtype).removeprefix("torch.")]
        return RawTensor(dtype, tensor.shape, memoryview(flat.numpy().data))

    return {name: one(tensor) for name, tensor in tensors.items()}
