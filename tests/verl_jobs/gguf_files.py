"""Write a tiny Llama as a GGUF file, in the way of llama.cpp's converter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from verl_jobs.gguf.convert import NAMES
from verl_jobs.sft.tiny_model import CHAT_TEMPLATE, train_tokenizer

TEXTS = ["def f(x):\n    return x + 12", "return the square of every number of the list xs"]


def tiny_llama(**changes: Any) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    tokenizer = train_tokenizer(TEXTS, 300)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        rope_parameters={"rope_type": "default", "rope_theta": 5_000.0},
        rms_norm_eps=1e-5,
        **{"tie_word_embeddings": True, "max_position_embeddings": 256} | changes,
    )
    return LlamaForCausalLM(config).eval(), tokenizer


def write(
    path: Path,
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    architecture: str = "llama",
    **tokens: Any,
) -> Path:
    """Write the model; tokens: further keys of the tokenizer, None leaves one out."""
    config = model.config
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_license("mit")
    _tokenizer(writer, tokenizer, tokens)
    _tensors(writer, model)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _tokenizer(
    writer: gguf.GGUFWriter, tokenizer: PreTrainedTokenizerFast, changes: dict[str, Any]
) -> None:
    bpe = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    vocabulary = sorted(bpe["vocab"], key=bpe["vocab"].__getitem__)
    special = set(tokenizer.get_added_vocab())
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(changes.pop("pre", "gpt-2"))
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token in special else 1 for token in vocabulary])
    writer.add_token_merges([" ".join(pair) for pair in bpe["merges"]])
    writer.add_chat_template(changes.pop("chat_template", CHAT_TEMPLATE))
    ids = {"bos_token_id": 1, "eos_token_id": 0, "padding_token_id": 2} | changes
    for key, value in ids.items():
        if isinstance(value, bool):
            writer.add_bool(f"tokenizer.ggml.{key}", value)
        elif value is not None:
            writer.add_uint32(f"tokenizer.ggml.{key}", value)


def _tensors(writer: gguf.GGUFWriter, model: LlamaForCausalLM) -> None:
    ours = {theirs: name for name, theirs in NAMES.items()}
    heads = {
        "attn_q": model.config.num_attention_heads,
        "attn_k": model.config.num_key_value_heads,
    }
    for name, tensor in model.state_dict().items():
        stem, weights = name.removesuffix(".weight"), tensor.numpy()
        if stem == "lm_head" and model.config.tie_word_embeddings:
            continue
        layer = ""
        if stem.startswith("model.layers."):
            _, _, number, stem = stem.split(".", 3)
            layer = f"blk.{number}."
        if count := heads.get(ours[stem]):
            halves = weights.reshape(count, 2, weights.shape[0] // count // 2, -1)
            weights = halves.swapaxes(1, 2).reshape(weights.shape)
        writer.add_tensor(f"{layer}{ours[stem]}.weight", np.ascontiguousarray(weights))
