"""A model of a few thousand random parameters."""

from __future__ import annotations

from pathlib import Path


def make_model(folder: Path, seed: int) -> Path:
    """Write a Qwen2 of a few thousand random parameters, as Hugging Face saves it.

    It has a byte tokenizer and a chat template.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    letters = {
        letter: at for at, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))
    } | {"<|end|>": 256}
    bare = Tokenizer(models.BPE(vocab=letters, merges=[]))
    bare.pre_tokenizer, bare.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bare, eos_token="<|end|>", pad_token="<|end|>"
    )
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=257,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return folder
