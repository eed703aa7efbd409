"""A lost sample changes no other baseline, in verl's advantages on verl's padded tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.slow  # importing verl takes longer than all of this

LENGTH = 3
REWARDS = st.lists(
    st.lists(st.sampled_from([-1.0, -0.8, 0.0, 1.0]), min_size=4, max_size=4),
    min_size=2,
    max_size=4,
)


def key(prompt: int, session: int) -> str:
    return f"{prompt:03d}_{session}_0"


def advantages(
    algorithm: str, rewards: dict[str, float], padding: int = 0
) -> dict[str, torch.Tensor]:
    """Return key -> advantages (LENGTH), computed with verl's padding rows (padding_utils.py)."""
    from verl.protocol import DataProto
    from verl.trainer.config import AlgoConfig
    from verl.trainer.ppo.padding_utils import construct_minimal_padding_template
    from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories

    keys = [*rewards, *(f"padfeed_{at}_0" for at in range(padding))]
    mask, scores = torch.zeros(len(keys), LENGTH), torch.zeros(len(keys), LENGTH)
    for row, value in enumerate(rewards.values()):
        mask[row], scores[row, -1] = 1.0, value
    if padding:
        sample = {
            "prompts": torch.ones(2),
            "responses": torch.ones(LENGTH),
            "position_ids": torch.arange(2 + LENGTH),
            "rm_scores": scores[0],
        }
        template, _ = construct_minimal_padding_template(sample, {}, eos_token_id=0)
        mask[len(rewards) :, 0], scores[len(rewards) :, 0] = (
            template["response_mask"].float(),
            template["rm_scores"],
        )
    data = DataProto.from_single_dict(
        {"response_mask": mask, "token_level_rewards": scores, "token_level_scores": scores}
    )
    data.non_tensor_batch["uid"] = np.array([name.rsplit("_", 2)[0] for name in keys], dtype=object)
    done = compute_advantage_for_multi_trajectories(
        data, keys, algorithm, num_repeat=4, config=AlgoConfig()
    )
    return {
        name: done.batch["advantages"][row]
        for row, name in enumerate(keys)
        if not name.startswith("pad")
    }


@pytest.mark.parametrize("algorithm", ["grpo", "rloo"])
@settings(max_examples=25)
@given(REWARDS, st.data())
def test_a_lost_sample_changes_no_baseline_outside_its_group(
    algorithm: str, groups: list[list[float]], data: st.DataObject
) -> None:
    rewards = {
        key(prompt, session): value
        for prompt, group in enumerate(groups)
        for session, value in enumerate(group)
    }
    lost = key(data.draw(st.integers(0, len(groups) - 1)), data.draw(st.integers(0, 3)))
    whole, left = (
        advantages(algorithm, rewards),
        {name: value for name, value in rewards.items() if name != lost},
    )
    padded, alone = (
        advantages(algorithm, left, padding=1),
        advantages(algorithm, {n: v for n, v in left.items() if n[:3] == lost[:3]}),
    )
    for name in left:
        other_group = name[:3] != lost[:3]
        assert torch.equal(
            padded[name], whole[name] if other_group else alone[name]
        )  # its own group has the mean of the remaining ones


@pytest.mark.parametrize("algorithm", ["grpo", "rloo", "reinforce_plus_plus"])
@settings(max_examples=15)
@given(REWARDS, st.integers(1, 7))
def test_padding_changes_no_advantage(
    algorithm: str, groups: list[list[float]], padding: int
) -> None:
    rewards = {
        key(prompt, session): value
        for prompt, group in enumerate(groups)
        for session, value in enumerate(group)
    }
    bare, padded = advantages(algorithm, rewards), advantages(algorithm, rewards, padding)
    assert all(torch.allclose(bare[name], padded[name], atol=1e-6) for name in rewards)


def test_a_lone_completion_of_a_group_is_left_out() -> None:
    from verl_jobs.trainer.replay_buffer import keys_of_small_groups

    rewards = {
        key(0, 0): 1.0,
        key(0, 1): -1.0,
        key(1, 2): -0.8,
    }  # one score in the second group
    assert advantages("grpo", rewards)[key(1, 2)].tolist() == pytest.approx([-0.8] * LENGTH)
    assert keys_of_small_groups(list(rewards), least=2) == {key(1, 2)}
    assert keys_of_small_groups(list(rewards), least=1) == set()


def test_a_group_is_counted_in_completions_and_not_in_turns() -> None:
    from verl_jobs.trainer.replay_buffer import keys_of_small_groups

    assert keys_of_small_groups(["000_0_0", "000_0_1", "001_0_0", "001_1_0"], least=2) == {
        "000_0_0",
        "000_0_1",
    }
