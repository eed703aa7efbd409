"""A model made from scratch and its warm-up: the same seed gives the same bytes."""

from pathlib import Path

import pytest

from artifacts.hashing import hash_folder
from verl_jobs.sft.tiny_model import TinyModel, make, train_tokenizer
from verl_jobs.sft.warm_up import WarmUp, warm_up

TEXTS = [
    "sort the numbers",
    "def solve(x):\n    return sorted(x)",
    "add them up",
    "def solve(x):\n    return sum(x)",
] * 8
CHATS = [
    ("sort the numbers", "def solve(x):\n    return sorted(x)"),
    ("add them up", "def solve(x):\n    return sum(x)"),
] * 16
SMALL = TinyModel(hidden=32, layers=1, vocabulary=300)


def test_the_same_seed_makes_the_same_model(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make(SMALL, TEXTS, tmp_path / name)
    assert hash_folder(tmp_path / "a") == hash_folder(tmp_path / "b")


def test_another_seed_makes_another_model(tmp_path: Path) -> None:
    make(SMALL, TEXTS, tmp_path / "a")
    make(SMALL.model_copy(update={"seed": 2}), TEXTS, tmp_path / "b")
    assert hash_folder(tmp_path / "a") != hash_folder(tmp_path / "b")


def test_the_tokenizer_round_trips_any_text() -> None:
    tokenizer = train_tokenizer(TEXTS, 300)
    for text in ("x = {w: len(w) for w in x}", "héllo \U0001f40d\ttab", ""):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_chat_template_ends_where_the_completion_starts() -> None:
    tokenizer = train_tokenizer(TEXTS, 300)
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], tokenize=False, add_generation_prompt=True
    )
    assert chat == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.slow
def test_the_warm_up_learns_and_is_reproducible(tmp_path: Path) -> None:
    make(SMALL, TEXTS, tmp_path / "base")
    config = WarmUp(steps=12, batch=4)
    losses = [warm_up(tmp_path / "base", CHATS, config, tmp_path / name) for name in ("a", "b")]
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]
    assert hash_folder(tmp_path / "a") == hash_folder(tmp_path / "b")
