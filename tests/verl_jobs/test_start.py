"""A checkpoint that cannot be trained from is refused before anything starts, in one line that names what is wrong with it."""

from __future__ import annotations

import json
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
    told = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(told | changes))


def _without_template(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    told = json.loads((folder / "tokenizer_config.json").read_text())
    told.pop("chat_template", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(told))


def _weights_of(other: str) -> Callable[[Path, Path], object]:
    return lambda folder, whole: shutil.copy(whole / other / "model.safetensors", folder)


SPOILED: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "no folder at all": (lambda f, _: shutil.rmtree(f), "no config.json"),
    "a model that writes no text": (
        lambda f, _: _config(f, architectures=["Qwen2ForTokenClassification"]),
        "architectures is Qwen2ForTokenClassification",
    ),
    "an architecture nobody knows": (
        lambda f, _: _config(f, model_type="qwen99"),
        "transformers knows no such architecture",
    ),
    "no tokenizer": (lambda f, _: (f / "tokenizer.json").unlink(), "no tokenizer (tokenizer.json"),
    "no chat template": (lambda f, _: _without_template(f), "no chat_template"),
    "a larger tokenizer than the embedding": (
        lambda f, _: _config(f, vocab_size=270),
        "tokens, the model's embedding 270",
    ),
    "pickled weights": (
        lambda f, _: (f / "model.safetensors").rename(f / "model.bin"),
        "no *.safetensors",
    ),
    "weights of a wider model": (_weights_of("wider"), "they are of two models"),
    "weights of a model with fewer layers": (_weights_of("shallower"), "they lack model.layers.1."),
    "a torn file of weights": (
        lambda f, _: (f / "model.safetensors").write_bytes(b"torn" * 9),
        "no safetensors file, or a torn one",
    ),
    "a config that contradicts itself": (
        lambda f, _: _config(f, num_hidden_layers=6),
        "contradicts itself: ",
    ),
    "an adapter alone": (
        lambda f, _: (f / "adapter_config.json").write_text("{}"),
        "an adapter without its base",
    ),
}


def test_a_whole_checkpoint_is_taken(whole: Path) -> None:
    check_start(
        whole / "m", tokens=200, frozen=("model.embed_tokens.*",), lora=Lora(modules=("q_proj",))
    )


@pytest.mark.parametrize("spoiled", SPOILED)
def test_what_is_no_start_is_refused_with_its_reason(
    whole: Path, tmp_path: Path, spoiled: str
) -> None:
    spoil, said = SPOILED[spoiled]
    shutil.copytree(whole / "m", tmp_path / "m")
    spoil(tmp_path / "m", whole)
    with pytest.raises(UnfitStart) as refused:
        check_start(tmp_path / "m")
    assert said in str(refused.value) and str(tmp_path / "m") in str(refused.value)


def test_more_tokens_than_positions_are_refused(whole: Path) -> None:
    with pytest.raises(
        UnfitStart, match="max_position_embeddings is 512, prompt and answer take 600"
    ):
        check_start(whole / "m", tokens=600)


def test_names_that_the_model_does_not_have_are_refused(whole: Path) -> None:
    with pytest.raises(UnfitStart, match="matches no parameter"):
        check_start(whole / "m", frozen=("transformer.h.0.*",))
    with pytest.raises(UnfitStart, match=r"no layer query_key_value, it has .*q_proj"):
        check_start(whole / "m", lora=Lora(modules=("query_key_value",)))
