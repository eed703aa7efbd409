"""A training whose layout does not fit is refused with a layout that fits."""

from __future__ import annotations

import pytest

from verl_jobs.config.scale import Megatron, ScaleSettings
from verl_jobs.config.training import Training
from verl_jobs.planner.fit import check_fit
from verl_jobs.planner.planner import estimate, forward_tokens, plan, update_of
from verl_jobs.planner.shapes import GPUS, SHAPES, DoesNotFit

SEVEN = SHAPES["Qwen/Qwen2.5-Coder-7B"]


def training(ranks: int = 4, **scale: object) -> Training:
    return Training(
        engine="vllm",
        ranks=ranks,
        prompt_tokens=512,
        answer_tokens=512,
        group_size=16,
        scale=ScaleSettings.model_validate(scale),
    )


def test_a_model_that_needs_offloading_is_refused_without_it() -> None:
    gpu = GPUS["H100"]
    best = plan(SEVEN, gpu, 2, training(2))
    assert best.training.scale.offload == "idle"
    with pytest.raises(DoesNotFit, match=r"\d\d\.\d GiB.*--set training\.scale\.offload=idle"):
        check_fit(SEVEN, gpu, training(2))
    check_fit(SEVEN, gpu, best.training)


def test_a_too_long_forward_pass_is_refused_with_a_fitting_one() -> None:
    shape, gpu = SHAPES["Qwen/Qwen2.5-Coder-0.5B"], GPUS["RTX4090"]
    small = forward_tokens(plan(shape, gpu, 4, training()).training)
    with pytest.raises(DoesNotFit, match=rf"activations .*micro_batch_tokens={small}\b"):
        check_fit(shape, gpu, training(micro_batch_tokens=2 * small))
    check_fit(shape, gpu, training(micro_batch_tokens=small))


@pytest.mark.parametrize("gpus", [2, 4, 8])
@pytest.mark.parametrize("gpu", ["L40S", "A100-80", "H200"])
@pytest.mark.parametrize("name", sorted(SHAPES))
@pytest.mark.parametrize("scale", [{}, {"precision": "fp32"}, {"activation_checkpointing": False}])
def test_every_plan_passes_the_fit_check(
    name: str, gpu: str, gpus: int, scale: dict[str, object]
) -> None:
    config = training(gpus, **scale)
    try:
        best = plan(SHAPES[name], GPUS[gpu], gpus, config)
    except DoesNotFit:
        return
    assert not best.faults
    check_fit(SHAPES[name], GPUS[gpu], best.training)


def test_a_critic_needs_gpu_memory_and_a_reference_needs_none() -> None:
    alone, both = (
        estimate(SEVEN, GPUS["H200"], training().model_copy(update=more))
        for more in ({}, {"algorithm": "ppo", "kl_coefficient": 0.01})
    )
    assert sum(both.update.values()) - sum(alone.update.values()) == pytest.approx(
        12 * SEVEN.parameters / 4, rel=1e-6
    )


def test_layouts_outside_the_formulas_are_not_refused() -> None:
    large, gpu = SHAPES["Qwen/Qwen2.5-Coder-32B"], GPUS["A100-40"]
    with pytest.raises(DoesNotFit):
        check_fit(large, gpu, training())
    check_fit(large, gpu, training(megatron=Megatron(tensor_parallel=4)))
    check_fit(large, gpu, training(placement="separate_async", engine_gpus=4))


def test_a_configured_layout_that_fits_is_the_plan() -> None:
    scale = ScaleSettings(
        offload="always", tensor_parallel=2, sequence_parallel=2, micro_batch_tokens=4096
    )
    large, configured = SHAPES["Qwen/Qwen2.5-Coder-14B"], training(2)
    configured = configured.model_copy(update={"scale": scale})
    assert plan(large, GPUS["H100"], 2, configured).training.scale == scale
    check_fit(large, GPUS["H100"], configured)


def test_long_completions_need_no_power_of_two() -> None:
    """18,432 tokens of one sequence fit, 32,768 do not."""
    long = training(8, offload="idle").model_copy(
        update={"prompt_tokens": 2048, "answer_tokens": 16_384}
    )
    tokens = forward_tokens(plan(SEVEN, GPUS["A100-80"], 8, long).training)
    assert 18_432 <= tokens < 65_536
    assert tokens & (tokens - 1)


def test_shared_sequences_make_long_completions_fit_small_gpus() -> None:
    long = training(8).model_copy(update={"prompt_tokens": 2048, "answer_tokens": 30_000})
    found = plan(SHAPES["Qwen/Qwen2.5-Coder-1.5B"], GPUS["RTX4090"], 8, long)
    scale = found.training.scale
    assert scale.sequence_parallel > 1
    tokens = forward_tokens(found.training)
    assert tokens * scale.sequence_parallel >= 32_048 > tokens


def test_a_forward_pass_must_hold_the_longest_sequence() -> None:
    """verl stops with an AssertionError in the first step otherwise."""
    with pytest.raises(DoesNotFit, match=r"512 tokens .* does not hold a sequence of 1024"):
        check_fit(SEVEN, GPUS["H100"], training(8, micro_batch_tokens=512))
    with pytest.raises(DoesNotFit, match=r"512 tokens \(log_prob_tokens .* sequence of 1024"):
        check_fit(SEVEN, GPUS["H100"], training(8, log_prob_tokens=512))
    check_fit(SEVEN, GPUS["H100"], training(8, micro_batch_tokens=512, sequence_parallel=2))


def test_more_tokens_without_gradients_need_memory_of_their_own() -> None:
    with pytest.raises(DoesNotFit, match=r"400000 tokens without gradients"):
        check_fit(SEVEN, GPUS["H100"], training(8, log_prob_tokens=400_000))
    check_fit(SEVEN, GPUS["H100"], training(8, log_prob_tokens=32_768))


def test_sequence_parallel_ranks_each_have_the_whole_token_budget() -> None:
    one, four = (
        update_of(SEVEN, training(sequence_parallel=ranks, micro_batch_tokens=4096))["activations"]
        for ranks in (1, 4)
    )
    assert one == four
    one, four = (
        update_of(SEVEN, training(sequence_parallel=ranks, accumulation=4))["activations"]
        for ranks in (1, 4)
    )
    assert one == 4 * four


def test_the_suggested_layout_resets_conflicting_settings() -> None:
    with pytest.raises(DoesNotFit) as error:
        check_fit(SEVEN, GPUS["A100-80"], training(8, shards=2, accumulation=1))
    assert {"training.scale.shards=0", "training.scale.accumulation=0"} <= {
        *str(error.value).split()
    }
