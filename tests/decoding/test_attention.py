"""Heads that share keys attend as in transformers, whatever the row's place in a padded batch."""

import pytest
import torch

from decoding.attention import NAME, share_heads
from decoding.batch import Row, decode


@pytest.mark.parametrize("key_heads", [1, 2])
def test_completions_are_those_of_transformers_own_attention(key_heads: int) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=key_heads,
    )
    model = LlamaForCausalLM(config).eval()

    def decoded() -> tuple[list[list[int]], list[float]]:
        draws = torch.Generator().manual_seed(1)
        prompts = [torch.randint(3, 300, (n,), generator=draws).tolist() for n in (3, 9, 5, 12)]
        rows = [Row(prompt, limit) for prompt, limit in zip(prompts, (20, 6, 12, 20), strict=True)]
        decode(model, 0, rows)
        return [row.tokens for row in rows], [p for row in rows for p in row.log_probs]

    tokens, log_probs = decoded()
    share_heads(model)
    assert model.config._attn_implementation == NAME
    shared_tokens, shared_log_probs = decoded()
    assert shared_tokens == tokens
    assert shared_log_probs == pytest.approx(log_probs, abs=1e-5)
