"""Supervised warm-up: resuming after a kill, adapters, frozen layers and batches."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from artifacts.hashing import hash_folder
from tests.verl_jobs.saves import ADAPTED
from verl_jobs.config.lora import ADAPTER, Lora
from verl_jobs.sft import warm_up as module
from verl_jobs.sft.generation import make_savable
from verl_jobs.sft.tiny_model import TinyModel, make
from verl_jobs.sft.warm_up import WarmUp, warm_up

CHATS = [
    ("sort the numbers", "def solve(x):\n    return sorted(x)"),
    ("add them up", "def solve(x):\n    return sum(x)"),
] * 8
WAYS = {
    "all": WarmUp(threads=1, steps=10, batch=4),
    "adamw": WarmUp(threads=1, steps=10, batch=4, optimizer="adamw"),
    "lora": WarmUp(threads=1, steps=10, batch=4, lora=Lora(rank=4)),
    "frozen": WarmUp(
        threads=1, steps=10, batch=4, frozen=("model.layers.0.*", "model.embed_tokens.*")
    ),
}


class Killed(Exception):
    pass


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    make(
        TinyModel(hidden=32, layers=2, vocabulary=300),
        [text for pair in CHATS for text in pair],
        folder,
    )
    return folder


def weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    tensors: dict[str, torch.Tensor] = load_file(folder / "model.safetensors")
    return tensors


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_warm_up_resumes_to_the_same_bytes(
    base: Path, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SAVE_EVERY_S", 0.0)
    undisturbed = warm_up(base, CHATS, WAYS[way], tmp_path / "whole")
    done: list[int] = []

    def kill(step: int, _: float) -> None:
        done.append(step)
        if done == [1, 2, 3, 4, 5, 6]:
            raise Killed

    state = tmp_path / "state" / "a.pt"
    with pytest.raises(Killed):
        warm_up(base, CHATS, WAYS[way], tmp_path / "again", kill, state)
    assert warm_up(base, CHATS, WAYS[way], tmp_path / "again", kill, state) == undisturbed
    assert done == list(range(1, 11))
    assert not state.exists()
    assert hash_folder(tmp_path / "again") == hash_folder(tmp_path / "whole")


def test_adapters_are_saved_merged_and_separately(base: Path, tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    warm_up(base, CHATS, WAYS["lora"], tmp_path)
    before, after = weights(base), weights(tmp_path)
    changed = {
        name.rsplit(".", 2)[1] for name in before if not torch.equal(before[name], after[name])
    }
    assert set(before) == set(after)
    assert changed == ADAPTED
    ids = torch.tensor([[1, 5, 9, 33, 7]])
    adapted: Any = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(base), tmp_path / ADAPTER
    ).eval()
    with torch.inference_mode():
        assert torch.allclose(
            AutoModelForCausalLM.from_pretrained(tmp_path).eval()(ids).logits,
            adapted(ids).logits,
            atol=1e-5,
        )


def test_frozen_layers_keep_the_weights_of_the_start(base: Path, tmp_path: Path) -> None:
    warm_up(base, CHATS, WAYS["frozen"], tmp_path)
    before, after = weights(base), weights(tmp_path)
    assert {name for name in before if not torch.equal(before[name], after[name])} == {
        name for name in before if name.startswith(("model.layers.1.", "model.norm"))
    }


def test_muon_moves_the_matrices_of_the_blocks_in_all_directions(
    base: Path, tmp_path: Path
) -> None:
    moved = {}
    for optimizer in ("muon", "adamw"):
        once = WarmUp(threads=1, steps=1, batch=4, schedule="constant", optimizer=optimizer)
        warm_up(base, CHATS, once, tmp_path / optimizer)
        before, after = weights(base), weights(tmp_path / optimizer)
        moved[optimizer] = {
            name: directions(after[name] - before[name])
            for name in before
            if name.endswith(("_proj.weight", "embed_tokens.weight"))
        }
    for name, share in moved["muon"].items():
        if name.endswith("embed_tokens.weight"):
            assert share == moved["adamw"][name]
        else:
            assert share > 1.3 * moved["adamw"][name], name


def directions(change: torch.Tensor) -> float:
    """Return the stable rank as a share of the rank that is possible."""
    lengths = torch.linalg.svdvals(change)
    return float((lengths**2).sum() / lengths[0] ** 2 / len(lengths))


def test_a_nan_loss_ends_the_warm_up_with_its_step(base: Path, tmp_path: Path) -> None:
    with pytest.raises(FloatingPointError, match=r"step \d+.*warm_up\.learning_rate"):
        warm_up(
            base,
            CHATS,
            WarmUp(threads=1, steps=30, batch=4, learning_rate=1e30, schedule="constant"),
            tmp_path,
        )


def batches(rows: int, batch: int, steps: int) -> list[list[int]]:
    return module._batches(
        [10] * rows, WarmUp(batch=batch, steps=steps), torch.Generator().manual_seed(1)
    )


@pytest.mark.parametrize("head", ["{{ bos_token }}", ""])
def test_the_ids_are_those_of_the_rendered_chat(base: Path, head: str) -> None:
    from tokenizers import processors
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base)
    bos = tokenizer.bos_token = "<s>"  # of Llama's kind: encoding a text adds it
    tokenizer.add_special_tokens({"bos_token": bos})
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", special_tokens=[(bos, tokenizer.bos_token_id)]
    )
    tokenizer.chat_template = head + "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    ids, labels = module._encode(tokenizer, *CHATS[0])
    chat = [{"role": "user", "content": CHATS[0][0]}]
    prompt = tokenizer.apply_chat_template(chat, return_dict=False)
    assert tokenizer("x").input_ids[0] == tokenizer.bos_token_id
    assert ids[: labels.count(-100)] == prompt
    assert tokenizer.bos_token_id not in labels


def test_fewer_rows_than_a_batch_form_one_batch() -> None:
    epochs = batches(rows=3, batch=16, steps=4)
    assert len(epochs) == 4
    assert all(sorted(picked) == [0, 1, 2] for picked in epochs)


@pytest.mark.parametrize(("rows", "each"), [(8, 2), (9, 3), (17, 5)])
def test_an_epoch_contains_each_row_once(rows: int, each: int) -> None:
    drawn = batches(rows, batch=4, steps=2 * each)
    for epoch in (drawn[:each], drawn[each:]):
        assert sorted(row for batch in epoch for row in batch) == list(range(rows))
        assert max(map(len, epoch)) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("way", ["all", "lora"])
def test_settings_that_transformers_does_not_save_leave_the_end_tokens(
    base: Path, tmp_path: Path, way: str
) -> None:
    from decoding.checkpoint import load

    start = shutil.copytree(base, tmp_path / "start")
    settings = {"do_sample": False, "temperature": 0.6, "eos_token_id": [2, 5]}
    (start / "generation_config.json").write_text(json.dumps(settings))
    warm_up(start, CHATS, WAYS[way].model_copy(update={"steps": 1}), tmp_path / "warm")
    assert load(tmp_path / "warm", "cpu").ends >= {2, 5}
    make_savable(start)
    assert load(start, "cpu").ends >= {2, 5}
    load(start, "cpu").model.save_pretrained(tmp_path / "again")


def test_an_empty_dataset_is_refused() -> None:
    with pytest.raises(ValueError, match=r"family\.demonstrations"):
        batches(rows=0, batch=4, steps=1)
