"""The planner's numbers match parameters of transformers and memory measured by torch."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from verl_jobs.config.agents import Agents
from verl_jobs.config.scale import ScaleSettings
from verl_jobs.config.training import Training
from verl_jobs.planner.memory import generation_bytes, logits_width, update_bytes
from verl_jobs.planner.planner import RESERVE, plan
from verl_jobs.planner.shapes import (
    GIB,
    GPUS,
    KINDS,
    SHAPES,
    SIZES,
    DoesNotFit,
    ModelShape,
    shape_of,
)

TINY = ModelShape(
    name="tiny",
    hidden=128,
    layers=3,
    heads=4,
    kv_heads=2,
    intermediate=384,
    vocabulary=512,
    tied=True,
)
WIDE = replace(TINY, name="wide", layers=6, vocabulary=4096, tied=False)
LONG = Training(engine="vllm", prompt_tokens=1024, answer_tokens=1024, group_size=16)


def model(shape: ModelShape) -> Any:
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        intermediate_size=shape.intermediate,
        vocab_size=shape.vocabulary,
        tie_word_embeddings=shape.tied,
        attn_implementation="sdpa",
    )
    return Qwen2ForCausalLM(config).float()


def test_the_cache_of_the_engine_has_the_stated_bytes() -> None:
    import torch

    from decoding.cache import growing_cache

    rows, prompt, completion = 3, 40, 65  # the last token makes every layer grow
    policy, cache = model(TINY), growing_cache(TINY.layers)
    with torch.no_grad():
        for columns in (prompt, *[1] * completion):
            ids = torch.zeros((rows, columns), dtype=torch.long)
            policy(input_ids=ids, past_key_values=cache, use_cache=True)
    layers = [sum(t.nbytes for t in layer.pair) for layer in cache.layers]
    stated = generation_bytes(TINY, rows, prompt, completion)["KV cache"]
    assert stated == sum(layers) + layers[0]  # the copy of one layer while it grows


def tracked(shape: ModelShape, tokens: int, checkpointing: bool) -> int:
    """Return the peak bytes of two updates, by torch's memory tracker."""
    import torch
    from torch.distributed._tools.mem_tracker import MemTracker

    policy = model(shape)
    if checkpointing:
        policy.gradient_checkpointing_enable()
    policy.train()
    optimizer, ids = (
        torch.optim.AdamW(policy.parameters(), lr=1e-3),
        torch.randint(0, shape.vocabulary, (tokens // 128, 128)),
    )
    tracker = MemTracker()
    tracker.track_external(policy, optimizer)
    with tracker:
        for _ in range(2):
            logits = policy(input_ids=ids, use_cache=False).logits.float()
            loss: Any = -torch.log_softmax(logits, -1).gather(-1, ids.unsqueeze(-1)).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            tracker.reset_mod_stats()
    return int(sum(device["Total"] for device in tracker.get_tracker_snapshot("peak").values()))


@pytest.mark.slow
@pytest.mark.parametrize("checkpointing", [True, False])
@pytest.mark.parametrize(
    ("shape", "tokens"),
    [(TINY, 2048), (TINY, 4096), (WIDE, 2048)],
    ids=["tiny, 2048", "tiny, 4096", "wide, 2048"],
)
def test_planned_update_memory_is_within_15_percent_of_torch(
    shape: ModelShape, tokens: int, checkpointing: bool
) -> None:
    planned = sum(update_bytes(shape, tokens, 1, mixed=False, checkpointing=checkpointing).values())
    assert planned == pytest.approx(tracked(shape, tokens, checkpointing), rel=0.15)


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("0.5B", 0.494),
        ("1.5B", 1.544),
        ("3B", 3.086),
        ("7B", 7.616),
        ("14B", 14.770),
        ("32B", 32.764),
    ],
)
def test_parameter_counts_match_the_published_sizes(name: str, billions: float) -> None:
    assert SHAPES[f"Qwen/Qwen2.5-Coder-{name}"].parameters / 1e9 == pytest.approx(
        billions, abs=0.001
    )


@given(
    name=st.sampled_from(sorted(SHAPES)),
    gpu=st.sampled_from(sorted(GPUS)),
    gpus=st.sampled_from([1, 2, 4, 8, 16]),
    share=st.floats(0.1, 0.95),
    algorithm=st.sampled_from(["grpo", "ppo"]),
)
@example(name="Qwen/Qwen2.5-Coder-1.5B", gpu="L40S", gpus=1, share=0.5, algorithm="grpo")
@example(name="Qwen/Qwen2.5-Coder-3B", gpu="RTX4090", gpus=4, share=0.5, algorithm="grpo")
def test_every_phase_of_a_plan_leaves_the_memory_reserve(
    name: str, gpu: str, gpus: int, share: float, algorithm: str
) -> None:
    training = LONG.model_copy(
        update={"scale": ScaleSettings(engine_memory=share), "algorithm": algorithm}
    )
    try:
        best = plan(SHAPES[name], GPUS[gpu], gpus, training)
    except DoesNotFit:
        return
    assert max(sum(best.update.values()), sum(best.rollout.values())) + RESERVE <= GPUS[gpu].memory


def test_an_engine_share_without_a_memory_reserve_is_refused() -> None:
    greedy = LONG.model_copy(update={"scale": ScaleSettings(engine_memory=0.96)})
    with pytest.raises(DoesNotFit, match=r"engine_memory 0\.96 .*4 GiB .*H100"):
        plan(SHAPES["Qwen/Qwen2.5-Coder-0.5B"], GPUS["H100"], 8, greedy)


def test_a_larger_engine_share_holds_more_completions() -> None:
    half, most = (
        LONG.model_copy(update={"scale": ScaleSettings(engine_memory=share)})
        for share in (0.5, 0.7)
    )
    shape, gpu = SHAPES["Qwen/Qwen2.5-Coder-7B"], GPUS["H100"]
    assert plan(shape, gpu, 8, most).concurrent > plan(shape, gpu, 8, half).concurrent


def test_more_gpus_never_take_longer() -> None:
    one, eight = (
        plan(SHAPES["Qwen/Qwen2.5-Coder-0.5B"], GPUS["H100"], gpus, LONG) for gpus in (1, 8)
    )
    assert sum(eight.seconds.values()) < sum(one.seconds.values())


def seconds(**changes: object) -> dict[str, float]:
    return plan(
        SHAPES["Qwen/Qwen2.5-Coder-7B"], GPUS["H100"], 8, LONG.model_copy(update=changes)
    ).seconds


def test_a_critic_takes_as_long_as_the_policy() -> None:
    alone, both = seconds(), seconds(algorithm="ppo")
    assert both == alone | {
        "critic's values": alone["old log-probabilities"],
        "critic's update": alone["update"],
    }
    assert sum(both.values()) - both["rollout"] == pytest.approx(
        2 * (sum(alone.values()) - alone["rollout"])
    )


def test_remax_adds_one_completion_per_problem_to_the_rollout_only() -> None:
    alone, both = seconds(group_size=2), seconds(group_size=2, algorithm="remax")
    assert both["rollout"] == pytest.approx(seconds(group_size=3)["rollout"])
    assert both["rollout"] > alone["rollout"]
    assert {**both, "rollout": 0} == {**alone, "rollout": 0}


@given(st.integers(64, 4096))
def test_a_conversation_takes_as_long_as_a_completion_of_its_length(tokens: int) -> None:
    agents = Agents(turns=2, tokens=tokens)
    assert seconds(answer_tokens=32, agents=agents) == seconds(answer_tokens=tokens)


def test_an_engine_does_not_span_machines() -> None:
    """Twelve GPUs hold three engines of four, but two machines of six hold only two."""
    large, gpu, training = (
        SHAPES["Qwen/Qwen2.5-Coder-14B"],
        GPUS["L40S"],
        LONG.model_copy(update={"problems_per_step": 48}),
    )
    assert plan(large, gpu, 12, training).training.scale.tensor_parallel == 4
    with pytest.raises(DoesNotFit):
        plan(large, gpu, 12, training.model_copy(update={"scale": ScaleSettings(nodes=2)}))


def test_a_model_that_does_not_fit_is_refused_with_the_numbers() -> None:
    with pytest.raises(DoesNotFit, match=r"32B .*1 x H100 \(80 GiB .* optimizer 24\d\.\d"):
        plan(SHAPES["Qwen/Qwen2.5-Coder-32B"], GPUS["H100"], 1, LONG)


def config(folder: Path, **changes: object) -> str:
    """Write a config.json of TINY's shape with these changes and return the folder."""
    about = {
        "model_type": "qwen2",
        "hidden_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 384,
        "vocab_size": 512,
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(about | changes), encoding="utf-8")
    return str(folder)


def test_the_config_of_a_model_folder_is_read(tmp_path: Path) -> None:
    assert shape_of(config(tmp_path)).parameters == TINY.parameters
    with pytest.raises(DoesNotFit, match=r"config\.json.*vocab_size is None"):
        shape_of(config(tmp_path, vocab_size=None))


def test_heads_wider_than_the_model_are_counted(tmp_path: Path) -> None:
    """Qwen3-4B by its published config: 4.02 billion parameters, 1,024 key values per token."""
    four = {
        "hidden_size": 2560,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
    }
    shape = shape_of(
        config(tmp_path, model_type="qwen3", intermediate_size=9728, vocab_size=151_936, **four)
    )
    assert shape.parameters == pytest.approx(4_022_468_096, rel=1e-4)
    assert shape.kv_width == 1024


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", [32, 64])
def test_every_supported_model_type_matches_transformers(
    kind: str, head: int, tmp_path: Path
) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    wide = {} if kind == "qwen2" else {"head_dim": head}
    folder = config(
        tmp_path,
        model_type=kind,
        hidden_size=1024,
        num_attention_heads=16,
        num_key_value_heads=4,
        intermediate_size=2816,
        **wide,
    )
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    assert shape_of(folder).parameters == pytest.approx(
        sum(weight.numel() for weight in model.parameters()), rel=5e-4
    )


@pytest.mark.parametrize(
    "changes",
    [{"model_type": "qwen3_moe", "num_experts": 128}, {"model_type": "gpt2"}, {"model_type": None}],
)
def test_an_unsupported_model_type_is_refused(changes: dict[str, object], tmp_path: Path) -> None:
    """Without the check Qwen3-30B-A3B would count as a dense model of 2.9 billion."""
    with pytest.raises(
        DoesNotFit,
        match=rf"model_type is {changes['model_type']!r}.*qwen2",
    ):
        shape_of(config(tmp_path, **changes))


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 4096)
    | st.floats()
    | st.text(max_size=3)
    | st.lists(st.integers(), max_size=2)
)


@given(
    changes=st.dictionaries(st.sampled_from([*SIZES, "head_dim", "tie_word_embeddings"]), VALUES)
)
def test_any_config_gives_a_shape_or_does_not_fit(
    changes: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with suppress(DoesNotFit):
        assert shape_of(config(tmp_path_factory.mktemp("any"), **changes)).parameters > 0


@pytest.mark.parametrize(
    "torn",
    [b"", b'{"model_type": "qwen2", "hidden_si', b"\xff\xfe", b"[]", b"null", b"[" * 100_000],
)
def test_a_damaged_config_is_refused_with_its_path(torn: bytes, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(torn)
    with pytest.raises(DoesNotFit, match=r"config\.json"):
        shape_of(str(tmp_path))


def test_the_error_for_an_unknown_model_lists_known_ones() -> None:
    with pytest.raises(DoesNotFit, match=r"nobody/nothing.*Qwen/Qwen2\.5-Coder-0\.5B"):
        shape_of("nobody/nothing")


def test_training_state_takes_16_bytes_per_parameter() -> None:
    memory = update_bytes(SHAPES["Qwen/Qwen2.5-Coder-7B"], 1024, 8)
    assert memory["weights"] + memory["gradients"] + memory["optimizer"] == pytest.approx(
        16 * 7.6156e9 / 8, rel=1e-4
    )
    assert memory["optimizer"] / GIB == pytest.approx(7.09, abs=0.02)


@pytest.mark.parametrize("modules", [(), ("q_proj", "down_proj")])
def test_trainable_parameters_of_adapters_match_peft(
    modules: tuple[str, ...], tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    from verl_jobs.config.lora import Lora, add_adapter
    from verl_jobs.sft.tiny_model import TinyModel, make

    make(TinyModel(), ["sort the list"] * 4, tmp_path)
    lora = Lora(rank=4, modules=modules)
    model = add_adapter(AutoModelForCausalLM.from_pretrained(tmp_path), lora)
    assert shape_of(str(tmp_path)).learned(lora) == sum(
        p.numel() for p in model.parameters() if p.requires_grad
    )


def test_adapters_fit_on_the_gpu_where_full_training_needs_the_host() -> None:
    from verl_jobs.config.lora import Lora

    shape, gpu = SHAPES["Qwen/Qwen2.5-Coder-7B"], GPUS["H100"]
    full, adapters = (
        plan(shape, gpu, 1, Training(engine="vllm", lora=lora)) for lora in (None, Lora(rank=16))
    )
    assert full.training.scale.offload == "always"
    assert adapters.training.scale.offload != "always"
    assert adapters.update["optimizer"] < GIB


@pytest.mark.slow
@pytest.mark.parametrize(("entropy", "expected"), [(0.0, 6), (0.001, 16)])
def test_the_head_takes_the_memory_of_verls_own_functions(entropy: float, expected: int) -> None:
    import torch
    from torch.distributed._tools.mem_tracker import MemTracker
    from verl.utils.torch_functional import entropy_from_logits, logprobs_from_logits_v2

    tokens, vocabulary, hidden = 1024, 32_768, 16
    head = torch.nn.Linear(hidden, vocabulary, bias=False).bfloat16()
    states = torch.randn(tokens, hidden, dtype=torch.bfloat16, requires_grad=True)
    labels = torch.randint(0, vocabulary, (tokens,))
    tracker = MemTracker()
    with tracker:
        logits = head(states)
        loss = logprobs_from_logits_v2(logits, labels).float().mean()
        if entropy:
            loss = loss + entropy * entropy_from_logits(logits).float().mean()
        loss.backward()
    peak = sum(device["Total"] for device in tracker.get_tracker_snapshot("peak").values())
    assert peak / (tokens * vocabulary) == pytest.approx(expected, abs=0.2)
    assert logits_width(Training(entropy_coefficient=entropy)) == expected
