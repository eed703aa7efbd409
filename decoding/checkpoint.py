"""A checkpoint of transformers, loaded for decoding.

In: a Hugging Face folder. Out: model and tokenizer with what a batch needs of them. Code in a
checkpoint is never run, and nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from decoding.attention import share_heads
from problems.chat_template import rendered

# Parameters up to which one thread per batch is fastest: the matrices are too small to share, and
# waiting threads spin.
SMALL = 20_000_000
ATTENTION = {"full_attention", "sliding_attention", "chunked_attention"}
LOCAL = {"trust_remote_code": False, "local_files_only": True}
Prompt = list[dict[str, str]] | str  # a chat, or a text that the model continues


@dataclass(frozen=True)
class Checkpoint:
    """A causal language model in evaluation mode, with its tokenizer."""

    model: Any
    tokenizer: Any

    @cached_property
    def positions(self) -> int:
        """Return the maximum tokens of prompt and completion together."""
        return int(getattr(self.model.config, "max_position_embeddings", 1 << 30))

    @cached_property
    def ends(self) -> frozenset[int]:
        """Return the end tokens: the generation config may name several, the tokenizer one more."""
        named = self.model.generation_config.eos_token_id
        listed = named if isinstance(named, list) else [named]
        return frozenset(x for x in [*listed, self.tokenizer.eos_token_id] if x is not None)

    @property
    def pad(self) -> int:
        return self.tokenizer.pad_token_id or 0

    @cached_property
    def single_threaded(self) -> bool:
        """Return whether an operation of this model is fastest in one thread."""
        return bool(self.model.device.type == "cpu" and self.model.num_parameters() <= SMALL)

    def encode(self, prompt: Prompt) -> list[int]:
        return encode(self.tokenizer, prompt)

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))


def encode(tokenizer: Any, prompt: Prompt) -> list[int]:
    """Return token ids: of a chat by the tokenizer's template, of a text with its special tokens.

    Raises ProblemError for a chat that the template refuses.
    """
    if isinstance(prompt, str):
        return list(tokenizer.encode(prompt))
    return list(tokenizer.encode(rendered(tokenizer, prompt), add_special_tokens=False))


def load(
    folder: Path, device: str | None = None, dtype: torch.dtype | None = None, weights: bool = True
) -> Checkpoint:
    """Load a folder. device: None takes a GPU where there is one. dtype: None is fp32 on a CPU and
    bf16 on a GPU. weights: False leaves them random, for an engine that receives them later.

    Raises OSError or ValueError for a folder without such a model, and ValueError for a model with
    a recurrent state, whose rows cannot share a batch.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    dtype = dtype or (torch.float32 if device == "cpu" else torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(folder, **LOCAL)
    if weights:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **LOCAL)
    else:
        config = AutoConfig.from_pretrained(folder, **LOCAL)
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
        if (Path(folder) / "generation_config.json").exists():
            model.generation_config = GenerationConfig.from_pretrained(folder)
    states = set(getattr(model.config.get_text_config(), "layer_types", None) or ()) - ATTENTION
    if states or model._is_stateful:
        names = ", ".join(sorted(states)) or "a recurrent state"
        raise ValueError(
            f"{folder}: {names}: rows of this model cannot join a batch; use the engine vllm"
        )
    if device == "cpu":
        share_heads(model)
    return Checkpoint(model.to(device).eval(), tokenizer)
