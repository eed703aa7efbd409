"""Merging and saving adapters, and freezing parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from verl_jobs.config.lora import (
    ADAPTER,
    Lora,
    add_adapter,
    merge_adapter,
    merge_folder,
    split_adapter,
)
from verl_jobs.config.training import Training
from verl_jobs.frozen import freeze, lower_half, matching_names
from verl_jobs.sft.tiny_model import TinyModel, make

LORA = Lora(rank=4, alpha=12)
IDS = torch.tensor([[1, 5, 9, 33, 7]])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    make(
        TinyModel(hidden=32, layers=2, vocabulary=300),
        ["sort the list", "return sorted(x)"] * 4,
        folder,
    )
    return folder


def loaded(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def adapted(base: Path) -> Any:
    """Return a model whose adapter is not zero, while PEFT starts with B = 0."""
    torch.manual_seed(0)
    model = add_adapter(loaded(base), LORA).eval()
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    return model


def test_merged_weights_give_the_logits_of_the_adapted_model(adapted: Any, base: Path) -> None:
    plain = loaded(base)
    weights, adapter = split_adapter(adapted.state_dict())
    plain.load_state_dict(merge_adapter(weights, adapter, LORA.scale))
    with torch.inference_mode():
        assert torch.allclose(plain(IDS).logits, adapted(IDS).logits, atol=1e-5)
        assert not torch.allclose(plain(IDS).logits, loaded(base)(IDS).logits, atol=1e-2)


def test_a_saved_adapter_is_merged_once_and_loads(adapted: Any, base: Path, tmp_path: Path) -> None:
    from peft import PeftModel
    from safetensors.torch import save_file
    from transformers import AutoConfig

    AutoConfig.from_pretrained(base).save_pretrained(tmp_path)
    save_file(
        {name: tensor.clone() for name, tensor in adapted.state_dict().items()},
        tmp_path / "model.safetensors",
        metadata={"format": "pt"},
    )
    merge_folder(tmp_path, LORA)
    first = (tmp_path / "model.safetensors").read_bytes()
    merge_folder(tmp_path, LORA)
    assert (tmp_path / "model.safetensors").read_bytes() == first
    with torch.inference_mode():
        expected = adapted(IDS).logits
        assert torch.allclose(loaded(tmp_path)(IDS).logits, expected, atol=1e-5)
        assert torch.allclose(
            PeftModel.from_pretrained(loaded(base), tmp_path / ADAPTER).eval()(IDS).logits,
            expected,
            atol=1e-5,
        )


def test_an_adapter_of_another_architecture_is_refused(adapted: Any) -> None:
    weights, adapter = split_adapter(adapted.state_dict())
    del weights["model.layers.1.mlp.up_proj.weight"]
    with pytest.raises(KeyError, match=r"up_proj\.weight"):
        merge_adapter(weights, adapter, LORA.scale)


def test_frozen_parameters_keep_their_values_through_a_step(base: Path) -> None:
    model = loaded(base).train()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    assert freeze(model, lower_half(2)) > 0
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
    model(input_ids=IDS, labels=IDS).loss.backward()
    optimizer.step()
    changed = {
        name
        for name, parameter in model.named_parameters()
        if not torch.equal(parameter, before[name])
    }
    assert changed == {
        name for name in before if name.startswith(("model.layers.1.", "model.norm"))
    }


@pytest.mark.parametrize(
    ("patterns", "error"),
    [
        (("model.layer.0.*",), r"model\.layer\.0\..*e\.g\. model"),
        (("*",), r"\* "),
    ],
)
def test_names_that_freeze_nothing_or_everything_are_refused(
    base: Path, patterns: tuple[str, ...], error: str
) -> None:
    names = [name for name, _ in loaded(base).named_parameters()]
    with pytest.raises(ValueError, match=error):
        matching_names(names, patterns)


def test_adapters_and_frozen_names_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="lora or frozen"):
        Training(lora=Lora(), frozen=("model.embed_tokens.*",))
