"""Convert a GGUF file to a Hugging Face folder with safetensors weights in fp32.

In: a `Source` and an empty folder. Out: the folder, and the facts of its passport. The weights are
dequantized, so they are not those that the file was quantized from.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from verl_jobs.gguf.header import Header, Tensor, read_header
from verl_jobs.gguf.source import GgufSource, find
from verl_jobs.gguf.tokenizer import check_tokenizer, make_tokenizer
from verl_jobs.sft.start import UnfitStart

if TYPE_CHECKING:
    import numpy as np
    from transformers import LlamaConfig

NOT_STATED = "not stated"  # a licence that a file does not name
NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_norm": "post_attention_layernorm",
}


def check(source: GgufSource) -> Header:
    """Return the file's header. Raises UnfitStart if the file cannot be converted."""
    try:
        import gguf  # noqa: F401
    except ImportError:
        raise UnfitStart(
            f"{source.path}: the package gguf, which reads it, is not installed: pip install gguf"
        ) from None
    header = read_header(source.path)
    check_tokenizer(header)
    if (scaling := header.get("rope.scaling.type", "none")) != "none":
        raise UnfitStart(
            f"{source.path}: llama.rope.scaling.type is {scaling!r}, known: none: convert it to a "
            "Hugging Face folder with another tool"
        )
    if (rotated := header.get("rope.dimension_count", header.head)) != header.head:
        raise UnfitStart(
            f"{source.path}: llama.rope.dimension_count is {rotated}, known: the width of a head, "
            f"{header.head}: convert it to a Hugging Face folder with another tool"
        )
    for name in header.tensors:
        _name(header, name)
    return header


def convert(source: GgufSource, folder: Path) -> dict[str, Any]:
    """Write config, weights and tokenizer to `folder`; return the facts. Raises UnfitStart."""
    from safetensors.numpy import save_file
    from transformers import GenerationConfig

    header = check(source)
    folder.mkdir(exist_ok=True)
    tokenizer = make_tokenizer(header)
    config = _config(header, tokenizer)
    kinds, state = dict[str, int](), {}
    for name, tensor in header.tensors.items():
        weights, kind = _weights(header, tensor)
        if ".attn_q." in name or ".attn_k." in name:
            weights = _unpermuted(weights, header.heads[".attn_k." in name])
        state[_name(header, name)] = weights
        kinds[kind] = kinds.get(kind, 0) + weights.size
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    config.save_pretrained(folder)
    GenerationConfig.from_model_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {
        "parameters": sum(kinds.values()),
        "origin": source.origin(),
        "licence": header.metadata.get("general.license", NOT_STATED),
        "quantization": ", ".join(sorted(kinds, key=lambda kind: -kinds[kind])),
    }


def converted(base: str, folder: Path) -> Path:
    """Return the converted model of a GGUF base, below `folder`; equal files are converted once.

    Raises UnfitStart.
    """
    source = find(base)
    model = folder / f"{source.package or source.path.stem}-{source.sha256()[:12]}"
    if not model.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as beside:
            convert(source, Path(beside) / "model")
            with suppress(FileExistsError):  # another process was faster
                (Path(beside) / "model").rename(model)
    return model


def _config(header: Header, tokenizer: Any) -> LlamaConfig:
    from transformers import LlamaConfig

    heads, kv_heads = header.heads
    return LlamaConfig(
        architectures=["LlamaForCausalLM"],
        dtype="float32",
        hidden_size=header.need("embedding_length"),
        intermediate_size=header.need("feed_forward_length"),
        num_hidden_layers=header.need("block_count"),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=header.head,
        vocab_size=header.shape("token_embd.weight")[0],
        max_position_embeddings=header.need("context_length"),
        rms_norm_eps=header.need("attention.layer_norm_rms_epsilon"),
        rope_parameters={
            "rope_type": "default",
            "rope_theta": header.get("rope.freq_base", 10_000.0),
        },
        tie_word_embeddings=header.tied,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def _name(header: Header, name: str) -> str:
    """Return transformers' name of a tensor. Raises UnfitStart for one that LlamaConfig lacks."""
    *block, kind, part = name.split(".")
    if kind not in NAMES or part != "weight":
        raise UnfitStart(
            f"{header.path}: the tensor {name} is not known for this architecture: convert it to a "
            "Hugging Face folder with another tool"
        )
    layer = f"model.layers.{block[1]}." if len(block) == 2 else ""
    return f"{layer}{NAMES[kind]}.weight"


def _weights(header: Header, tensor: Tensor) -> tuple[np.ndarray, str]:
    """Return a tensor in fp32, and the name of its type in the file."""
    import numpy as np
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize, quant_shape_to_byte_shape

    try:
        kind = GGMLQuantizationType(tensor.kind)
        stored = quant_shape_to_byte_shape(tensor.shape, kind)
        data = np.memmap(header.path, np.uint8, "r", tensor.offset, stored)
        weights = np.ascontiguousarray(dequantize(data, kind), np.float32)
    except (ValueError, NotImplementedError) as error:
        raise UnfitStart(
            f"{header.path}: a tensor of type {tensor.kind} cannot be read ({error}): download the "
            "file again, or take another quantization"
        ) from None
    return weights, kind.name


def _unpermuted(weights: np.ndarray, heads: int) -> np.ndarray:
    """Undo llama.cpp's order of rows in queries and keys: it interleaves the halves of each head.

    weights: of shape (heads x width, hidden).
    """
    import numpy as np

    pairs = weights.reshape(heads, weights.shape[0] // heads // 2, 2, -1)
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(weights.shape))
