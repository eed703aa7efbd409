"""An unusable start model is refused with its path and the fault."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from verl_jobs.config.lora import Lora
from verl_jobs.sft.start import UnfitStart, check_start
from verl_jobs.sft.tiny_model import TinyModel, make

TEXTS = ["sort the list", "return sorted(x)"] * 4


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    make(TinyModel(hidden=32, layers=2, vocabulary=300), TEXTS, folder / "m")
    make(TinyModel(hidden=48, layers=2, vocabulary=300), TEXTS, folder / "wider")
    make(TinyModel(hidden=32, layers=1, vocabulary=300), TEXTS, folder / "shallower")
    make(
        TinyModel(hidden=32, layers=2, vocabulary=320),
        TEXTS * 40 + ["a b c d e f g h i j k"] * 9,
        folder / "more tokens",
    )
    return folder


def _config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def _without_template(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config.pop("chat_template", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def _template(text: str) -> Callable[[Path, Path], object]:
    return lambda folder, _: (folder / "chat_template.jinja").write_text(text)


def _without_end(folder: Path, _: Path) -> None:
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"eos_token": None}))


def _weights_of(other: str) -> Callable[[Path, Path], object]:
    return lambda folder, whole: shutil.copy(whole / other / "model.safetensors", folder)


SPOILED: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "no folder at all": (lambda f, _: shutil.rmtree(f), "config.json"),
    "a model that writes no text": (
        lambda f, _: _config(f, architectures=["Qwen2ForTokenClassification"]),
        "Qwen2ForTokenClassification",
    ),
    "an architecture nobody knows": (
        lambda f, _: _config(f, model_type="qwen99"),
        "qwen99",
    ),
    "no tokenizer": (lambda f, _: (f / "tokenizer.json").unlink(), "tokenizer.json"),
    "no chat template": (lambda f, _: _without_template(f), "chat_template"),
    "a chat template that refuses": (_template("{{ raise_exception('no') }}"), "message (no)"),
    "a chat template without the message": (_template("<user>"), "leaves out a user's message"),
    "no end token": (_without_end, "eos_token"),
    "a larger tokenizer than the embedding": (
        lambda f, _: _config(f, vocab_size=270),
        "vocab_size 270",
    ),
    "pickled weights": (
        lambda f, _: (f / "model.safetensors").rename(f / "model.bin"),
        "*.safetensors",
    ),
    "weights of a wider model": (_weights_of("wider"), "shape ["),
    "weights of a model with fewer layers": (_weights_of("shallower"), "model.layers.1."),
    "a torn file of weights": (
        lambda f, _: (f / "model.safetensors").write_bytes(b"torn" * 9),
        "model.safetensors",
    ),
    "a file of weights that is cut off": (
        lambda f, _: os.truncate(file := f / "model.safetensors", file.stat().st_size - 9),
        "is truncated",
    ),
    "a config that contradicts itself": (
        lambda f, _: _config(f, num_hidden_layers=6),
        "config.json is inconsistent",
    ),
    "an adapter alone": (
        lambda f, _: (f / "adapter_config.json").write_text("{}"),
        "adapter without its base",
    ),
}


def test_a_complete_checkpoint_is_accepted(whole: Path) -> None:
    check_start(
        whole / "m", tokens=200, frozen=("model.embed_tokens.*",), lora=Lora(modules=("q_proj",))
    )


@pytest.mark.parametrize("spoiled", SPOILED)
def test_an_unusable_start_model_is_refused_with_its_path(
    whole: Path, tmp_path: Path, spoiled: str
) -> None:
    spoil, error = SPOILED[spoiled]
    shutil.copytree(whole / "m", tmp_path / "m")
    spoil(tmp_path / "m", whole)
    with pytest.raises(UnfitStart) as refused:
        check_start(tmp_path / "m")
    assert error in str(refused.value)
    assert str(tmp_path / "m") in str(refused.value)


def test_more_tokens_than_positions_are_refused(whole: Path) -> None:
    with pytest.raises(UnfitStart, match=r"max_position_embeddings is 512.* 600"):
        check_start(whole / "m", tokens=600)


def test_parameter_names_that_the_model_lacks_are_refused(whole: Path) -> None:
    with pytest.raises(UnfitStart, match=r"transformer\.h\.0\."):
        check_start(whole / "m", frozen=("transformer.h.0.*",))
    with pytest.raises(UnfitStart, match=r"query_key_value.*q_proj"):
        check_start(whole / "m", lora=Lora(modules=("query_key_value",)))
