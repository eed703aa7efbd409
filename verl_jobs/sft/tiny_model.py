"""A new, small language model, deterministic by seed.

Qwen2 architecture, with its own BPE tokenizer and chat template. In: the texts it will see and a
`TinyModel` config. Out: a Hugging Face folder that any loader reads. The weights are random; a
warm-up comes next.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import NonNegativeInt, PositiveInt

from artifacts.section import Section

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + "
    "'\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


class TinyModel(Section):
    """The model of the embedded profile; about a million parameters."""

    seed: NonNegativeInt = 1
    """Seed of the initial weights."""
    vocabulary: PositiveInt = 512
    """Size of the BPE vocabulary, including the 256 bytes."""
    hidden: PositiveInt = 128
    """Width of the residual stream."""
    layers: PositiveInt = 3
    """Transformer blocks."""
    heads: PositiveInt = 4
    """Attention heads; half as many for keys and values."""
    positions: PositiveInt = 512
    """Maximum tokens of prompt and completion together."""


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer on `texts`.

    It encodes any string. `<|im_end|>` ends a completion.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=list(SPECIAL),
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def make(config: TinyModel, texts: Iterable[str], folder: Path) -> int:
    """Write model and tokenizer to `folder`; return the number of parameters."""
    import torch

    tokenizer = train_tokenizer(texts, config.vocabulary)
    torch.manual_seed(config.seed)
    model = _decoder(
        config,
        len(tokenizer),
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    ).float()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return sum(p.numel() for p in model.parameters())


def shapes(config: TinyModel) -> dict[str, list[int]]:
    """Return name -> shape of its parameters, with a full vocabulary, without allocating them."""
    import torch

    with torch.device("meta"):
        return {
            name: list(parameter.shape)
            for name, parameter in _decoder(config, config.vocabulary).named_parameters()
        }


def _decoder(config: TinyModel, vocabulary: int, **tokens: int) -> PreTrainedModel:
    from transformers import AutoModelForCausalLM, Qwen2Config

    model_config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=config.hidden,
        intermediate_size=config.hidden * 3,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=max(1, config.heads // 2),
        max_position_embeddings=config.positions,
        tie_word_embeddings=True,
        bos_token_id=None,
        **tokens,
    )
    return AutoModelForCausalLM.from_config(model_config)
