"""Decoding: rows are independent, and log-probabilities are those of the model."""

from typing import Any

import numpy as np
import pytest
import torch

from verl_jobs.sft.tiny_model import TinyModel, make


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from transformers import AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("model")
    make(
        TinyModel(hidden=32, layers=2, vocabulary=300),
        ["sort the list", "return sorted(x)"] * 4,
        folder,
    )
    return AutoModelForCausalLM.from_pretrained(folder).eval()


def requests(count: int, temperature: float, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "prompt_ids": rng.integers(3, 250, rng.integers(3, 12)).tolist(),
            "max_tokens": 12,
            "temperature": temperature,
            "top_k": -1,
            "top_p": 1.0,
            "stop": frozenset(),
            "uniform": rng.random(12),
        }
        for _ in range(count)
    ]


def test_all_tensors_are_on_the_model_s_device(model: Any) -> None:
    from verl_jobs.decoding import decode_batch

    batch = requests(3, 1.0)
    batch[0]["max_tokens"] = 4  # this row leaves the batch
    expected = decode_batch(model, batch, {2}, 0)
    with torch.device("meta"):  # a tensor without a device has no values then
        assert decode_batch(model, batch, {2}, 0) == expected


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_is_independent_of_its_neighbours(model: Any, temperature: float) -> None:
    from verl_jobs.decoding import decode_batch

    batch = requests(6, temperature)
    together = [tokens for tokens, _, _ in decode_batch(model, batch, {2}, 0)]
    alone = [decode_batch(model, [request], {2}, 0)[0][0] for request in batch]
    assert together == alone


def test_log_probabilities_are_those_of_the_model(model: Any) -> None:
    from verl_jobs.decoding import decode_batch

    [request] = requests(1, 1.0)
    [(tokens, log_probs, _)] = decode_batch(model, [request], {2}, 0)
    ids = torch.tensor([request["prompt_ids"] + tokens])
    with torch.inference_mode():
        expected = model(ids).logits[0, len(request["prompt_ids"]) - 1 : -1].log_softmax(-1)
    chosen = expected.gather(1, torch.tensor(tokens).unsqueeze(1)).squeeze(1)
    assert torch.allclose(chosen, torch.tensor(log_probs), atol=1e-4)


def test_a_completion_without_an_end_is_truncated(model: Any) -> None:
    from verl_jobs.decoding import decode_batch

    [(tokens, _, reason)] = decode_batch(model, requests(1, 1.0), set(), 0)
    assert (len(tokens), reason) == (12, "length")
