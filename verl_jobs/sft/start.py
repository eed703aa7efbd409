"""Check that training can start from a checkpoint.

Reads config, tokenizer and the shapes of the weights, but not the weights. Takes a second on a
model of 0.5 B, and needs neither Ray nor a GPU. Raises `UnfitStart`, which names file, key and fix.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verl_jobs.config.lora import Lora
from verl_jobs.frozen import matching_names

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")


class UnfitStart(ValueError):
    """A checkpoint that training cannot start from; one line that says what to do."""


def check_start(
    folder: Path, *, tokens: int = 0, frozen: Sequence[str] = (), lora: Lora | None = None
) -> None:
    """Raise UnfitStart if training cannot start from this folder.

    Reasons: a model of another kind, weights or a tokenizer of another model, a tokenizer without
    chat template, too few positions, and names in `frozen` or `lora` that the model does not have.
    tokens: maximum length of prompt and completion together.
    """
    from huggingface_hub.errors import StrictDataclassError
    from transformers import AutoConfig, AutoModelForCausalLM

    if (folder / "adapter_config.json").exists():
        raise UnfitStart(
            f"{folder} is an adapter without its base model: start from its parent folder, or "
            "merge it first (PEFT: merge_and_unload)"
        )
    if not (folder / "config.json").is_file():
        raise UnfitStart(
            f"{folder}: no config.json: a checkpoint is a Hugging Face folder with config, "
            "tokenizer and safetensors weights"
        )
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except StrictDataclassError as error:
        raise UnfitStart(
            f"{folder}/config.json is inconsistent: {' '.join(str(error).split())[:200]}"
        ) from None
    except (OSError, ValueError, KeyError) as error:
        raise UnfitStart(
            f"{folder}/config.json: architecture unknown to transformers: {_line(error)}"
        ) from None
    architectures = list(getattr(config, "architectures", None) or [])
    if type(config) not in AutoModelForCausalLM._model_mapping or not any(
        "CausalLM" in name or "LMHead" in name for name in architectures
    ):
        value = f"{architectures[0] if architectures else 'none'} (model_type {config.model_type})"
        raise UnfitStart(
            f"{folder}/config.json: key architectures is {value}: training needs a language "
            "model, ...ForCausalLM"
        )
    _check_tokenizer(folder, config)
    positions = getattr(config, "max_position_embeddings", None)
    if positions and tokens > positions:
        raise UnfitStart(
            f"{folder}/config.json: max_position_embeddings is {positions}, but prompt and "
            f"completion take {tokens}: lower training.prompt_tokens"
        )
    _check_weights(folder, config, frozen, lora)


def _check_tokenizer(folder: Path, config: Any) -> None:
    from transformers import AutoTokenizer

    if not any(
        (folder / name).exists() for name in TOKENIZERS
    ):  # transformers would create an empty one
        raise UnfitStart(
            f"{folder}: no tokenizer ({', '.join(TOKENIZERS)}): save the model's own there with "
            "save_pretrained"
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except (OSError, ValueError, KeyError) as error:
        raise UnfitStart(
            f"{folder}: its tokenizer does not load ({_line(error)}): save the model's own there"
        ) from None
    if not getattr(tokenizer, "chat_template", None):
        raise UnfitStart(
            f"{folder}: its tokenizer has no chat_template: copy that of the family's instruct "
            "model into tokenizer_config.json"
        )
    if tokenizer.eos_token is None:
        raise UnfitStart(
            f"{folder}/tokenizer_config.json: no eos_token, which ends a completion: name the "
            "token that ends an assistant's turn"
        )
    _check_template(folder, tokenizer)
    if len(tokenizer) > config.vocab_size:
        raise UnfitStart(
            f"{folder}: its tokenizer has {len(tokenizer)} tokens, more than vocab_size "
            f"{config.vocab_size} in config.json: "
            "it belongs to another model"
        )


def _check_template(folder: Path, tokenizer: Any) -> None:
    """Raise UnfitStart for a chat template that refuses a user's message, or leaves it out."""
    chat = [{"role": "user", "content": "message 1"}]
    try:
        text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # whatever the template does
        text, reason = "", f"refuses a user's message ({_line(error)})"
    else:
        reason = "leaves out a user's message"
    if chat[0]["content"] not in text:
        raise UnfitStart(
            f"{folder}: its chat_template {reason}: copy that of the family's instruct model"
        )


def _check_weights(folder: Path, config: Any, frozen: Sequence[str], lora: Lora | None) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    shapes = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    stored = _shapes(folder, model.base_model_prefix)
    if not stored:
        raise UnfitStart(
            f"{folder}: no *.safetensors: export the weights with save_pretrained (pickled "
            "weights are never loaded)"
        )
    missing = [
        name
        for name in shapes
        if name not in stored and not (name == "lm_head.weight" and config.tie_word_embeddings)
    ]
    # transformers fuses experts while loading, so their names differ
    converted = any(".experts." in name for name in stored)
    if missing and (not converted or len(missing) > len(shapes) / 2):
        raise UnfitStart(
            f"{folder}: its weights do not match its config.json ({config.architectures[0]}): "
            f"they lack {missing[0]}"
        )
    wrong = [name for name, shape in shapes.items() if name in stored and stored[name] != shape]
    if wrong:
        first = wrong[0]
        raise UnfitStart(
            f"{folder}: {first} has the shape {stored[first]}, but its config.json requires "
            f"{shapes[first]}: they belong to two models"
        )
    check_names(str(folder), shapes, frozen, lora)


def check_names(
    model: str, shapes: Mapping[str, list[int]], frozen: Sequence[str], lora: Lora | None
) -> None:
    """Raise UnfitStart for names in `frozen` or `lora.modules` that the model does not have.

    shapes: of the model's parameters, by name.
    """
    try:
        if frozen:
            matching_names(shapes, frozen)
    except ValueError as error:
        raise UnfitStart(f"{model}: {error}") from None
    if lora and lora.modules:
        layers = {name.rsplit(".", 2)[-2] for name in shapes if name.endswith(".weight")}
        if absent := [name for name in lora.modules if name.rsplit(".", 1)[-1] not in layers]:
            raise UnfitStart(
                f"{model}: lora.modules: the model has no layer {absent[0]}, it has "
                f"{', '.join(sorted(layers))}"
            )


def _shapes(folder: Path, prefix: str) -> dict[str, list[int]]:
    """Return the shapes of all tensors, also under the model's prefix.

    Files of a bare decoder lack that prefix.
    """
    stored = stored_shapes(folder)
    return {f"{prefix}.{name}": shape for name, shape in stored.items()} | stored


def stored_shapes(folder: Path) -> dict[str, list[int]]:
    """Return name -> shape of all tensors, read only from the headers of the safetensors files.

    Raises UnfitStart for an invalid file.
    """
    shapes: dict[str, list[int]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            try:
                header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
                header.pop("__metadata__", None)
                end = max((tensor["data_offsets"][1] for tensor in header.values()), default=0)
                if file.tell() + end > path.stat().st_size:
                    raise ValueError
            except (ValueError, MemoryError, OverflowError):
                raise UnfitStart(
                    f"{path} is not a safetensors file, or is truncated: download it again"
                ) from None
        shapes |= {name: list(tensor["shape"]) for name, tensor in header.items()}
    return shapes


def _line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
