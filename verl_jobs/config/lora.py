"""Low-rank adapters (LoRA; Hu et al. 2021, arXiv:2106.09685): W' = W + (alpha / rank) B A.

Only A and B are trained. verl wraps the model with PEFT. The Hugging Face model that verl saves
then uses PEFT's parameter names, which no loader reads. So this module merges the adapter, which is
in fp32, the precision of training, into the weights. It also writes it alone in PEFT's format.

verl's own `lora.merge` passes bfloat16 weights to the engine. On a CPU the rollouts would then be
sampled from weights other than the policy's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import PositiveInt

from artifacts.atomic import write_atomic
from artifacts.section import Section

if TYPE_CHECKING:
    from torch import Tensor

ADAPTER = "adapter"  # folder next to the merged weights, in PEFT's format
WRAPPER = "base_model.model."  # PEFT's prefix of every parameter name
A, B = "lora_A", "lora_B"
LINEAR = "all-linear"  # PEFT's name for every linear layer except the output layer


class Lora(Section):
    """Train low-rank adapters instead of all weights."""

    rank: PositiveInt = 8
    """Rank of the two matrices."""
    alpha: PositiveInt = 16
    """The adapter's product is scaled by alpha / rank."""
    modules: tuple[str, ...] = ()
    """Names of the linear layers that get an adapter, e.g. [q_proj, v_proj]; empty: all but the
    output layer.
    """

    @property
    def scale(self) -> float:
        return self.alpha / self.rank


def add_adapter(model: Any, lora: Lora) -> Any:
    """Return the model with a new adapter, its only trainable part.

    Raises ValueError if no layer has one of the configured names.
    """
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


def plain_name(name: str) -> str:
    """Return a parameter's name without PEFT's additions."""
    return name.removeprefix(WRAPPER).replace(".base_layer.", ".")


def is_adapter(name: str) -> bool:
    """Whether a parameter belongs to an adapter, by its name."""
    return f".{A}." in name or f".{B}." in name


def split_adapter(state: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Split a state into weights and adapter.

    The weights get their plain names; the adapter's matrices get the names that PEFT uses on disk
    (`....lora_A.weight`).
    """
    adapter = {
        name.replace(".default.", "."): tensor for name, tensor in state.items() if is_adapter(name)
    }
    return {
        plain_name(name): tensor
        for name, tensor in state.items()
        if name.replace(".default.", ".") not in adapter
    }, adapter


def merge_adapter(
    weights: Mapping[str, Tensor], adapter: Mapping[str, Tensor], scale: float
) -> dict[str, Tensor]:
    """Return the weights with scale * B A added wherever the adapter has a pair of matrices.

    The sum is that of the more precise of the two, and is then rounded to the weights' precision.
    weights: (out, in) under plain names; adapter: A (rank, in) and B (out, rank). Weights without a
    pair are returned as the same tensors. Raises KeyError if a pair has no matching weight.
    """
    result = dict(weights)
    for name, a in adapter.items():
        if f".{A}." not in name:
            continue
        target = plain_name(name.replace(f".{A}.", "."))
        if target not in result:
            raise KeyError(
                f"the adapter has {name}, but the model has no {target}: their architectures differ"
            )
        change = scale * (adapter[name.replace(f".{A}.", f".{B}.")] @ a)
        result[target] = (result[target] + change).to(result[target].dtype)
    return result


def merge_folder(folder: Path, lora: Lora) -> None:
    """Merge the adapter of a saved model into its weights, and save the adapter next to them.

    The result can be read by any loader. Calling it a second time changes nothing.
    """
    from safetensors.torch import load_file, save_file

    files = sorted(folder.glob("*.safetensors"))
    state = {name: tensor for file in files for name, tensor in load_file(file).items()}
    weights, adapter = split_adapter(state)
    if not adapter:
        return
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config.get("tie_word_embeddings"):
        weights.pop("lm_head.weight", None)  # shares the embedding's weights
    write_adapter(folder / ADAPTER, adapter, lora, base=str(config.get("_name_or_path", "")))
    temporary = folder / ".merged"
    save_file(
        {
            name: tensor.contiguous()
            for name, tensor in merge_adapter(weights, adapter, lora.scale).items()
        },
        temporary,
        metadata={"format": "pt"},
    )
    for file in files:
        file.unlink()
    (folder / "model.safetensors.index.json").unlink(missing_ok=True)
    temporary.replace(folder / "model.safetensors")


def write_adapter(folder: Path, adapter: Mapping[str, Tensor], lora: Lora, base: str) -> None:
    """Write the adapter alone, in the format of `peft.PeftModel.from_pretrained`.

    base: the checkpoint that the adapter belongs to.
    """
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
    adapter_config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "target_modules": modules,
        "bias": "none",
    }
    write_atomic(
        folder / "adapter_config.json",
        json.dumps(adapter_config | {"base_model_name_or_path": base}, indent=1),
    )
