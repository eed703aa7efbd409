"""The scale settings of a training become overrides; impossible ones are refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.verl_jobs.real_trainings import lines_of
from verl_jobs.config.scale import Distillation, Megatron, ScaleSettings
from verl_jobs.config.training import Training


def settings_of(**scale_keys: Any) -> dict[str, str]:
    return dict(line.lstrip("+").split("=", 1) for line in lines_of(Training(**scale_keys)))


FSDP = "actor_rollout_ref.actor.fsdp_config"


@pytest.mark.parametrize(
    ("scale_keys", "key", "value"),
    [
        ({"shards": 4}, f"{FSDP}.fsdp_size", "4"),
        ({"reshard": False}, f"{FSDP}.reshard_after_forward", "False"),
        ({"offload": "idle"}, f"{FSDP}.optimizer_offload", "True"),
        ({"offload": "always"}, f"{FSDP}.offload_policy", "True"),
        (
            {"activation_checkpointing": False},
            "actor_rollout_ref.model.enable_gradient_checkpointing",
            "False",
        ),
        ({"micro_batch_tokens": 9000}, "actor_rollout_ref.actor.ppo_max_token_len_per_gpu", "9000"),
        ({}, "actor_rollout_ref.actor.ppo_max_token_len_per_gpu", "16384"),
        (
            {"log_prob_tokens": 40_000},
            "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu",
            "40000",
        ),
        ({"fused_head": True}, "actor_rollout_ref.model.use_fused_kernels", "True"),
        ({"accumulation": 4}, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "8"),
        ({"accumulation": 4}, "actor_rollout_ref.actor.use_dynamic_bsz", "False"),
        ({"updates": 4}, "actor_rollout_ref.actor.ppo_mini_batch_size", "8"),
        ({"sequence_parallel": 2}, f"{FSDP}.ulysses_sequence_parallel_size", "2"),
        ({"tensor_parallel": 2}, "actor_rollout_ref.rollout.tensor_model_parallel_size", "2"),
        ({"engine_memory": 0.4}, "actor_rollout_ref.rollout.gpu_memory_utilization", "0.4"),
        ({"nodes": 2}, "trainer.n_gpus_per_node", "4"),
        (
            {"precision": "fp32"},
            f"{FSDP}.mixed_precision",
            "{param_dtype:fp32,reduce_dtype:fp32,buffer_dtype:fp32}",
        ),
        (
            {"megatron": Megatron(tensor_parallel=2)},
            "actor_rollout_ref.actor.megatron.tensor_model_parallel_size",
            "2",
        ),
        ({"megatron": Megatron()}, "model_engine", "megatron"),
        (
            {"megatron": Megatron()},
            "actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity",
            "full",
        ),
        ({"placement": "colocated_async"}, "trainer.v1.trainer_mode", "colocate_async"),
        (
            {"placement": "separate_async", "engine_gpus": 2},
            "actor_rollout_ref.rollout.n_gpus_per_node",
            "2",
        ),
        ({}, "trainer.v1.sampler.custom_sampler.name", "WatchedReplayBuffer"),
        (
            {"placement": "colocated_async"},
            "trainer.v1.sampler.custom_sampler.name",
            "WatchedAsyncReplayBuffer",
        ),
        (
            {"placement": "colocated_async", "weight_versions": 3},
            "trainer.v1.sampler.max_off_policy_threshold",
            "3",
        ),
        (
            {"distillation": Distillation(teacher="t")},
            "distillation.teacher_models.teacher_model.model_path",
            "'t'",
        ),
    ],
)
def test_each_scale_setting_becomes_an_override(
    scale_keys: dict[str, Any], key: str, value: str
) -> None:
    assert settings_of(engine="vllm", ranks=8, scale=ScaleSettings(**scale_keys))[key] == value


@pytest.mark.parametrize("engine", ["vllm", "sglang", "transformers"])
def test_an_engine_on_gpus_computes_in_bf16_and_checkpoints_activations(engine: str) -> None:
    settings = settings_of(engine=engine)
    assert settings["actor_rollout_ref.rollout.name"] == engine
    assert "param_dtype:bf16,reduce_dtype:fp32" in settings[f"{FSDP}.mixed_precision"]
    assert settings["actor_rollout_ref.model.enable_gradient_checkpointing"] == "True"


@pytest.mark.parametrize(
    ("scale_keys", "error"),
    [
        ({"scale": ScaleSettings(offload="idle")}, "offload"),
        ({"ranks": 3}, "32 problems x 8 .* 3 ranks"),
        ({"ranks": 4, "scale": ScaleSettings(nodes=3)}, "4 ranks .* 3 nodes"),
        ({"scale": ScaleSettings(updates=5)}, "32 problems .* 5 updates"),
        ({"scale": ScaleSettings(accumulation=7)}, "256 .* 1 ranks .* 7"),
        ({"ranks": 4, "scale": ScaleSettings(shards=3)}, "4 ranks .* 3 shards"),
        (
            {"ranks": 2, "engine": "vllm", "scale": ScaleSettings(tensor_parallel=4)},
            "2 ranks .* 4",
        ),
        (
            {"ranks": 2, "engine": "transformers", "scale": ScaleSettings(tensor_parallel=2)},
            "transformers .*tensor_parallel",
        ),
        ({"engine": "vllm", "scale": ScaleSettings(placement="separate_async")}, "engine_gpus"),
        (
            {"engine": "vllm", "algorithm": "ppo", "scale": ScaleSettings(megatron=Megatron())},
            "ppo .*megatron",
        ),
        (
            {"engine": "vllm", "scale": ScaleSettings(megatron=Megatron(), precision="fp32")},
            "precision .*FSDP2",
        ),
    ],
)
def test_an_impossible_scale_is_refused_with_its_numbers(
    scale_keys: dict[str, Any], error: str
) -> None:
    with pytest.raises(ValidationError, match=error):
        Training(**scale_keys)


def test_untested_scale_settings_are_listed() -> None:
    scale = ScaleSettings(
        megatron=Megatron(), distillation=Distillation(teacher="t"), placement="colocated_async"
    )
    assert scale.unrun("vllm").endswith(": Megatron, distillation, placement colocated_async.")
    separate = ScaleSettings(placement="separate_async", engine_gpus=1)
    assert separate.unrun("vllm").endswith(": placement separate_async.")
    assert ScaleSettings().unrun("vllm") == separate.unrun("hf") == ""
