"""A prompt computed once for its completions: the same numbers as one row for each completion."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import AutoModelForCausalLM, BloomConfig, FalconConfig, LlamaConfig

from decoding.checkpoint import load
from verl_jobs.cpu.shared_prompts import (
    entropies_of,
    full_length,
    group_size,
    log_probs_of,
    share,
    shares,
)
from verl_jobs.sft.tiny_model import TinyModel, make

VOCABULARY = 250
SMALL = {"vocab_size": 100, "hidden_size": 16}
PROMPTS = [torch.tensor(ids) for ids in ([5, 6, 7], [8, 9, 10, 11, 12])]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("model")
    make(TinyModel(hidden=32, layers=2, vocabulary=300), ["sort the list"] * 4, folder)
    return load(Path(folder), "cpu").model.train()


def one_by_one(model: Any, prompt: Tensor, completion: Tensor) -> Tensor:
    """Return the logits of each of the completion's tokens."""
    ids = torch.cat([prompt, completion]).unsqueeze(0)
    logits: Tensor = model(input_ids=ids).logits
    return logits[0, len(prompt) - 1 : -1]


def together(model: Any, prompts: list[Tensor], completions: list[Tensor]) -> Tensor:
    rows = share(prompts, completions, pad=0)
    logits: Tensor = model(
        input_ids=rows.ids,
        attention_mask=rows.mask,
        position_ids=rows.positions,
        logits_to_keep=torch.arange(rows.first, rows.ids.shape[1]),
    ).logits
    return logits[rows.row, rows.column]


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(1, 9)), min_size=1, max_size=7),
    st.integers(0, 1000),
)
def test_log_probabilities_and_gradients_are_those_of_single_rows(
    model: Any, drawn: list[tuple[int, int]], seed: int
) -> None:
    draw = torch.Generator().manual_seed(seed)
    prompts = [PROMPTS[at] for at, _ in drawn]
    completions = [torch.randint(3, VOCABULARY, (n,), generator=draw) for _, n in drawn]
    gradients, values = [], []
    for single in (True, False):
        logits = (
            torch.cat([one_by_one(model, *pair) for pair in zip(prompts, completions, strict=True)])
            if single
            else together(model, prompts, completions)
        )
        values.append(log_probs_of(logits, completions))
        model.zero_grad()
        torch.autograd.backward(values[-1].square().sum())
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert values[1].tolist() == pytest.approx(values[0].tolist(), abs=1e-4)
    assert gradients[1].tolist() == pytest.approx(gradients[0].tolist(), abs=1e-3)


def test_the_entropy_is_that_of_the_distribution() -> None:
    logits = torch.randn((1100, 50), generator=torch.Generator().manual_seed(1))
    p = logits.softmax(-1)
    expected = -(p * p.log()).sum(-1)
    assert entropies_of(logits).tolist() == pytest.approx(expected.tolist(), abs=1e-5)


def test_values_are_where_verl_reads_them() -> None:
    completions = [torch.tensor([20, 21]), torch.tensor([22])]
    values, offsets = full_length(torch.tensor([1.0, 2.0, 3.0]), PROMPTS, completions)
    assert values.tolist() == [0, 0, 1, 2, 0, 0, 0, 0, 0, 3, 0]
    assert offsets.tolist() == [0, 5, 11]


@pytest.mark.parametrize(
    ("config", "shared"),
    [
        ({}, True),
        ({"sliding_window": 100}, True),
        ({"sliding_window": 4}, False),
        ({"layer_types": ["full_attention", "linear_attention"]}, False),
    ],
)
def test_only_layers_that_see_the_whole_prompt_share_it(
    config: dict[str, Any], shared: bool
) -> None:
    completions = [torch.tensor([20, 21])] * 2
    assert shares(SimpleNamespace(**config), [PROMPTS[0]] * 2, completions) is shared


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SMALL, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16),
        BloomConfig(**SMALL, n_layer=2, n_head=2),
        FalconConfig(**SMALL, num_hidden_layers=2, num_attention_heads=2, alibi=True),
    ],
    ids=lambda config: str(config.model_type),
)
def test_a_model_shares_rows_only_where_its_numbers_stay_the_same(
    config: Any, attention: str
) -> None:
    prompts, completions = [PROMPTS[0]] * 2, [torch.tensor([20, 21]), torch.tensor([22, 23, 24])]
    try:
        random = AutoModelForCausalLM.from_config(config, attn_implementation=attention).eval()
    except ValueError:
        pytest.skip(f"transformers has no {attention} for {config.model_type}")
    with torch.no_grad():
        pairs = zip(prompts, completions, strict=True)
        single = torch.cat([one_by_one(random, *pair) for pair in pairs])
        try:
            shared = together(random, prompts, completions)
            same = torch.allclose(shared, single, atol=1e-5)
        except ValueError:  # the mask has too many dimensions for it
            same = False
    assert shares(random.config, prompts, completions) is same


@pytest.mark.parametrize(
    ("order", "limit", "size"),
    [([0, 0, 1, 1], 12, 2), ([0, 0, 1, 1], 7, 1), ([0, 1, 0, 1], 12, 1), ([0, 0, 0, 1], 12, 1)],
)
def test_a_micro_batch_has_whole_groups_that_fit(order: list[int], limit: int, size: int) -> None:
    lengths = [len(PROMPTS[at]) + 1 for at in order]
    assert group_size([PROMPTS[at] for at in order], lengths, limit) == size
