"""Low-rank adapters (LoRA; Hu et al. 2021, arXiv:2106.09685): W' = W + (alpha / rank) B A, with A and B alone learned.

In: a config; or the state of a model that wears an adapter, under PEFT's names. Out: merged weights that any loader reads, and the adapter by itself
in PEFT's format. verl wraps the model with PEFT; what it saves as a Hugging Face model bears PEFT's names and loads nowhere, so it is merged here, in
fp32 as it was trained. (verl's own `lora.merge` hands the engine weights in bfloat16: on a CPU the policy would be sampled from others than it has.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, PositiveInt

from artifacts.store import write_atomic

if TYPE_CHECKING:
    from torch import Tensor

ADAPTER = "adapter"  # folder beside the merged weights, in PEFT's format
WRAPPER = "base_model.model."  # what PEFT puts before every name
A, B = "lora_A", "lora_B"
LINEAR = "all-linear"  # PEFT's word for every linear layer but the output's


class Lora(BaseModel):
    """Adapters instead of all weights."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    rank: PositiveInt = 8
    """Width of the two matrices."""
    alpha: PositiveInt = 16
    """What they add is scaled by alpha / rank."""
    modules: tuple[str, ...] = ()
    """Names of the linear layers that get one, e.g. [q_proj, v_proj]; empty: all but the output's."""

    @property
    def scale(self) -> float:
        return self.alpha / self.rank


def wrap(model: Any, lora: Lora) -> Any:
    """The model wearing a new adapter, the only part that learns. Raises ValueError where no layer has such a name."""
    from peft import LoraConfig, TaskType, get_peft_model

    modules = list(lora.modules) or LINEAR
    return get_peft_model(
        model,
        LoraConfig(
            task_type=TaskType.CAUSAL_LM,
            r=lora.rank,
            lora_alpha=lora.alpha,
            target_modules=modules,
            bias="none",
        ),
    )


def plain(name: str) -> str:
    """A parameter's name without what PEFT added."""
    return name.removeprefix(WRAPPER).replace(".base_layer.", ".")


def apart(state: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Weights under their plain names, and the adapter's matrices under PEFT's names on disk (`....lora_A.weight`)."""
    adapter = {
        name.replace(".default.", "."): tensor
        for name, tensor in state.items()
        if f".{A}." in name or f".{B}." in name
    }
    return {
        plain(name): tensor
        for name, tensor in state.items()
        if name.replace(".default.", ".") not in adapter
    }, adapter


def merged(
    weights: Mapping[str, Tensor], adapter: Mapping[str, Tensor], scale: float
) -> dict[str, Tensor]:
    """The weights with scale * B A added where the adapter has a pair; those that it leaves alone are the same tensors.

    weights: (out, in) under plain names; adapter: A (rank, in) and B (out, rank). Raises KeyError for a pair without its weight.
    """
    found = dict(weights)
    for name, a in adapter.items():
        if f".{A}." not in name:
            continue
        target = plain(name.replace(f".{A}.", "."))
        if target not in found:
            raise KeyError(
                f"the adapter has {name}, the model no {target}: they are of two architectures"
            )
        found[target] = found[target] + scale * (adapter[name.replace(f".{A}.", f".{B}.")] @ a)
    return found


def merge_folder(folder: Path, lora: Lora) -> None:
    """Makes a saved model that wears an adapter one that any loader reads, with the adapter beside; done twice, it changes nothing."""
    from safetensors.torch import load_file, save_file

    files = sorted(folder.glob("*.safetensors"))
    state = {name: tensor for file in files for name, tensor in load_file(file).items()}
    weights, adapter = apart(state)
    if not adapter:
        return
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config.get("tie_word_embeddings"):
        weights.pop("lm_head.weight", None)  # the embedding's own
    write_adapter(folder / ADAPTER, adapter, lora, base=str(config.get("_name_or_path", "")))
    beside = folder / ".merged"
    save_file(
        {
            name: tensor.contiguous()
            for name, tensor in merged(weights, adapter, lora.scale).items()
        },
        beside,
        metadata={"format": "pt"},
    )
    for file in files:
        file.unlink()
    (folder / "model.safetensors.index.json").unlink(missing_ok=True)
    beside.replace(folder / "model.safetensors")


def write_adapter(folder: Path, adapter: Mapping[str, Tensor], lora: Lora, base: str) -> None:
    """The adapter alone, as `peft.PeftModel.from_pretrained` reads it. base: the checkpoint that it belongs to."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: tensor.contiguous() for name, tensor in adapter.items()},
        folder / "adapter_model.safetensors",
        metadata={"format": "pt"},
    )
    modules = sorted(
        {name.split(f".{A}.")[0].rsplit(".", 1)[1] for name in adapter if f".{A}." in name}
    )
    told = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "target_modules": modules,
        "bias": "none",
    }
    write_atomic(
        folder / "adapter_config.json",
        json.dumps(told | {"base_model_name_or_path": base}, indent=1),
    )
