"""The overrides name an attention that is installed, and torch's own gives the same update."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.config.load import load_profile
from tests.verl_jobs.real_trainings import lines_of
from verl_jobs.config.engine_overrides import FLASH, SDPA, check_attention
from verl_jobs.config.training import Training

KEY = "+actor_rollout_ref.model.override_config.attn_implementation"


@pytest.fixture
def package(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Install the metadata of a package: only its presence is read."""
    metadata = tmp_path / f"{request.param.replace('-', '_')}-9.0.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {request.param}\nVersion: 9.0.0\n")
    (tmp_path / "flash_attn").mkdir()
    monkeypatch.syspath_prepend(tmp_path)


def attention_of(training: Training) -> str:
    return next(line.partition("=")[2] for line in lines_of(training) if line.startswith(KEY))


def test_without_flash_attention_the_overrides_name_torch_s_own() -> None:
    assert attention_of(load_profile("gpu").training) == SDPA


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("package", ["flash-attn-4"], indirect=True)
def test_another_package_with_the_same_module_is_not_taken_for_it() -> None:
    assert attention_of(load_profile("gpu").training) == SDPA


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("package", ["flash-attn"], indirect=True)
def test_with_flash_attention_the_overrides_name_it() -> None:
    assert attention_of(load_profile("gpu").training) == FLASH
    check_attention(load_profile("cluster-32b").training)


def test_the_user_s_own_choice_wins() -> None:
    eager = Training(engine="vllm", verl=(f"{KEY}=eager",))
    assert [line for line in lines_of(eager) if "attn_implementation" in line] == [f"+{KEY}=eager"]


def test_sequence_parallelism_without_flash_attention_is_refused() -> None:
    with pytest.raises(ValueError, match="sequence_parallel=8 needs flash-attn"):
        check_attention(load_profile("cluster-32b").training)


@pytest.mark.slow
def test_packed_sequences_do_not_see_each_other_in_torch_s_own_attention() -> None:
    """verl packs a forward pass into one row and gives positions only, no mask."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "vocab_size": 50}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = Qwen2Config(**sizes, **heads, attn_implementation=SDPA)
    model = Qwen2ForCausalLM(config).eval()
    sequences = [torch.randint(0, 50, (length,)) for length in (7, 1, 12)]
    packed = torch.cat(sequences)[None]
    positions = torch.cat([torch.arange(len(sequence)) for sequence in sequences])[None]
    with torch.no_grad():
        together = model(input_ids=packed, position_ids=positions, use_cache=False).logits[0]
        alone = torch.cat([model(input_ids=sequence[None]).logits[0] for sequence in sequences])
    assert torch.allclose(together, alone, atol=1e-5)
    assert not torch.allclose(model(input_ids=packed, use_cache=False).logits[0], alone, atol=1e-3)
