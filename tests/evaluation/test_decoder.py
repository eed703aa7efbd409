"""Completions of a checkpoint are correct, in order and reproducible."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from evaluation.generation.decoder import generate
from evaluation.sampling import Chat, Sampling
from problems.prompt import prompt_text
from problems.schema import Problem

GREEDY = Sampling(max_new_tokens=12)
SAMPLED = Sampling(n=3, temperature=1.0, max_new_tokens=12, seed=7)


@pytest.fixture(scope="module")
def prompts(problems: list[Problem]) -> list[Chat]:
    return [[{"role": "user", "content": prompt_text(problem)}] for problem in problems]


def test_greedy_completions_equal_those_of_transformers(
    checkpoint: Path, prompts: list[Chat]
) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = (
        AutoTokenizer.from_pretrained(checkpoint),
        AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval(),
    )
    for chat, output in zip(prompts[:6], generate(checkpoint, prompts, GREEDY)[:6], strict=True):
        text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(
            text, return_tensors="pt", add_special_tokens=False, return_token_type_ids=False
        )
        out = model.generate(**ids, max_new_tokens=12, do_sample=False)[
            0, ids["input_ids"].shape[1] :
        ]
        assert output.text == tokenizer.decode(out, skip_special_tokens=True)


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED])
def test_the_order_of_the_prompts_changes_no_completion(
    checkpoint: Path, prompts: list[Chat], sampling: Sampling
) -> None:
    order = list(range(len(prompts)))
    random.Random(0).shuffle(order)
    straight, mixed = (
        generate(checkpoint, prompts, sampling),
        generate(checkpoint, [prompts[i] for i in order], sampling),
    )
    n = sampling.n
    for at, i in enumerate(order):
        assert mixed[at * n : at * n + n] == straight[i * n : i * n + n]


def test_completions_differ_by_sample_number_and_seed(
    checkpoint: Path, prompts: list[Chat]
) -> None:
    completions = generate(checkpoint, prompts[:1], SAMPLED)
    assert len({output.text for output in completions}) == 3
    assert generate(checkpoint, prompts[:1], SAMPLED.model_copy(update={"seed": 8})) != completions


def test_an_unfinished_completion_is_marked_as_truncated(
    checkpoint: Path, prompts: list[Chat]
) -> None:
    assert all(
        output.cut == (output.tokens == 12) for output in generate(checkpoint, prompts, GREEDY)
    )


def test_a_too_long_prompt_gets_an_empty_truncated_completion(
    checkpoint: Path, prompts: list[Chat]
) -> None:
    long: Chat = [{"role": "user", "content": "sort upwards " * 600}]
    outputs = generate(checkpoint, [long, prompts[0]], GREEDY)
    assert (outputs[0].text, outputs[0].tokens, outputs[0].cut) == ("", 0, True)
    assert outputs[1].tokens > 0


def test_progress_ends_at_the_number_of_prompts(checkpoint: Path, prompts: list[Chat]) -> None:
    calls: list[tuple[int, int]] = []
    generate(checkpoint, prompts, GREEDY, lambda done, of: calls.append((done, of)))
    assert calls[-1] == (len(prompts), len(prompts))


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no config.json there"):
        generate(tmp_path, [[{"role": "user", "content": "?"}]], GREEDY)
