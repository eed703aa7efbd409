"""A batch: rows are independent, join and leave, and log-probabilities are those of the model."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from decoding.batch import Batch, Row, decode
from decoding.checkpoint import Checkpoint, load
from decoding.draws import nth_seed, uniform_of
from decoding.text import TextStream
from verl_jobs.sft.tiny_model import TinyModel, make


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    folder = tmp_path_factory.mktemp("model")
    make(
        TinyModel(hidden=32, layers=2, vocabulary=300),
        ["sort the list", "return sorted(x)"] * 4,
        folder,
    )
    return load(folder, "cpu")


def rows(count: int, temperature: float = 1.0, **settings: Any) -> list[Row]:
    rng = np.random.default_rng(0)
    prompts = [rng.integers(3, 250, rng.integers(3, 12)).tolist() for _ in range(count)]
    return [
        Row(
            prompt,
            **{"limit": 12, "ends": frozenset({2}), **settings},
            temperature=temperature,
            uniform=uniform_of(7, prompt) if temperature else None,
        )
        for prompt in prompts
    ]


def decoded(checkpoint: Checkpoint, batch: list[Row]) -> list[list[int]]:
    decode(checkpoint.model, checkpoint.pad, batch)
    return [row.tokens for row in batch]


def test_all_tensors_are_on_the_model_s_device(checkpoint: Checkpoint) -> None:
    def different_limits() -> list[Row]:
        batch = rows(3)
        batch[0].limit = 4  # this row leaves the batch
        return batch

    expected = decoded(checkpoint, different_limits())
    with torch.device("meta"):  # a tensor without a device has no values then
        assert decoded(checkpoint, different_limits()) == expected


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("top_p", [0.6, 1.0])
def test_a_row_is_independent_of_its_neighbours(
    checkpoint: Checkpoint, temperature: float, top_p: float
) -> None:
    together = decoded(checkpoint, rows(6, temperature, top_p=top_p))
    alone = [decoded(checkpoint, [row])[0] for row in rows(6, temperature, top_p=top_p)]
    assert together == alone


def test_a_row_that_joins_late_gets_the_same_tokens(checkpoint: Checkpoint) -> None:
    expected = decoded(checkpoint, rows(6))
    batch, waiting = Batch(checkpoint.model, checkpoint.pad), rows(6)
    joined = list(waiting)
    while waiting or batch.rows:
        if waiting:
            batch.join([waiting.pop(0)])
        if batch.rows:
            batch.step()
    assert [row.tokens for row in joined] == expected


def test_rows_that_leave_free_their_cache(checkpoint: Checkpoint) -> None:
    batch, few = Batch(checkpoint.model, checkpoint.pad), rows(6, limit=50, ends=frozenset())
    batch.join(few)
    batch.leave(few[1:])
    keys, _ = batch._cache.layers[0].pair
    assert len(keys) == 1
    assert batch._cache.layers[0].length == len(few[0].prompt)
    batch.leave(few[:1])
    assert batch._cache.layers[0].pair is None


@pytest.mark.parametrize("top_p", [0.6, 1.0])
def test_log_probabilities_are_those_of_the_sampled_distribution(
    checkpoint: Checkpoint, top_p: float
) -> None:
    [row] = rows(1, 0.7, top_p=top_p)
    decode(checkpoint.model, checkpoint.pad, [row])
    with torch.inference_mode():
        logits = checkpoint.model(torch.tensor([[*row.prompt, *row.tokens]])).logits[0]
    chances = (logits[len(row.prompt) - 1 : -1] / 0.7).softmax(-1)
    for chance, token, log_prob in zip(chances, row.tokens, row.log_probs, strict=True):
        falling = chance.sort(descending=True).values
        kept = falling[falling.cumsum(0) - falling < top_p].sum()
        assert float((chance[token] / kept).log()) == pytest.approx(log_prob, abs=1e-4)


def test_a_completion_without_an_end_is_truncated(checkpoint: Checkpoint) -> None:
    [row] = rows(1, ends=frozenset())
    decode(checkpoint.model, checkpoint.pad, [row])
    assert (len(row.tokens), row.ending) == (12, "length")


def test_a_completion_ends_with_a_stop_word(checkpoint: Checkpoint) -> None:
    [free] = rows(1, ends=frozenset())
    decode(checkpoint.model, checkpoint.pad, [free])
    word = next(iter(re.findall("[a-z]{2}", checkpoint.decode(free.tokens))))
    [row] = rows(1, ends=frozenset(), text=TextStream(checkpoint.tokenizer, [word]))
    decode(checkpoint.model, checkpoint.pad, [row])
    assert row.ending == "stop"
    assert word in checkpoint.decode(row.tokens)
    assert word not in checkpoint.decode(row.tokens[:-1])


def test_a_model_without_numbers_ends_its_rows(checkpoint: Checkpoint, tmp_path: Path) -> None:
    checkpoint.model.save_pretrained(tmp_path)
    checkpoint.tokenizer.save_pretrained(tmp_path)
    broken = load(tmp_path, "cpu")
    torch.nn.init.constant_(broken.model.model.norm.weight, float("nan"))
    batch = rows(2)
    decode(broken.model, broken.pad, batch)
    assert [row.ending for row in batch] == ["broken", "broken"]


def test_each_draw_has_a_seed_of_its_own() -> None:
    assert nth_seed(5, 0) == 5
    assert len({nth_seed(seed, number) for seed in range(20) for number in range(20)}) == 400


def test_a_prompt_is_read_once_for_all_of_its_rows(checkpoint: Checkpoint) -> None:
    read = []
    hook = checkpoint.model.register_forward_pre_hook(
        lambda _, __, kwargs: read.append(kwargs["input_ids"].shape[0]), with_kwargs=True
    )
    batch = [*rows(2), *rows(2)]
    for number, row in enumerate(batch):
        row.uniform = uniform_of(nth_seed(7, number), row.prompt)
    together = decoded(checkpoint, batch)
    hook.remove()
    assert read[0] == 2
    for number, row in enumerate([*rows(2), *rows(2)]):
        row.uniform = uniform_of(nth_seed(7, number), row.prompt)
        assert decoded(checkpoint, [row]) == [together[number]]
