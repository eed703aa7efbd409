"""Dry run of each kind of plugin: one step on small tensors or a tiny model.

Each uses verl's own functions and config. Input: the plugin, its reference, a `TinyTraining`.
Output: a sentence on the result. Each raises PluginError with the error and the fix.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from verl import DataProto

from problems.difficulty.pass_rate_prior import ExpectedPassRate
from rewards.question import task_from_ground_truth
from verl_jobs.config.references import PluginError
from verl_jobs.curriculum.own_sampler import OwnTable

# Imported so that verl finds references in its registries.
from verl_jobs.plugins import own_algorithms  # noqa: F401
from verl_jobs.plugins.dry_rollouts import agent_loop, reward_manager
from verl_jobs.plugins.dry_run import (
    LENGTHS,
    check_signature,
    check_subclass,
    described,
    is_number,
    mask_of,
    run_user_code,
)
from verl_jobs.plugins.tiny_training import TinyTraining

LOSS = (
    "old_log_prob",
    "log_prob",
    "advantages",
    "response_mask",
    "loss_agg_mode",
    "config",
    "rollout_is_weights",
)
ADVANTAGE = ("token_level_rewards", "response_mask", "config", "index")
DATASET = ("data_files", "tokenizer", "processor", "config", "max_samples")
ROW = ("raw_prompt", "reward_model", "data_source", "extra_info", "index")
SAMPLER = ("expected", "steps", "seed")


def loss(function: Any, reference: str, tiny_training: TinyTraining) -> str:
    """Compute the loss of four completions, and its gradient to the log-probabilities.

    The completions have unequal lengths.
    """
    from verl.utils.config import omega_conf_to_dataclass

    check_signature(function, reference, LOSS)
    mask = mask_of(LENGTHS)
    config = omega_conf_to_dataclass(tiny_training.config.actor_rollout_ref.actor)
    config.global_batch_info.update(
        dp_size=1,
        batch_num_tokens=int(mask.sum()),
        global_batch_size=len(LENGTHS),
        loss_scale_factor=config.loss_scale_factor,
    )
    generator = torch.Generator().manual_seed(1)
    old = -torch.rand(mask.shape, generator=generator)
    new = (old + 0.1 * torch.randn(mask.shape, generator=generator)).requires_grad_()
    signs = torch.tensor([1.0, -1.0, 0.5, -0.5]).unsqueeze(1).expand(mask.shape)
    arguments = {
        "old_log_prob": old,
        "log_prob": new,
        "advantages": signs,
        "response_mask": mask,
        "config": config,
        "rollout_is_weights": None,
    }
    result = run_user_code(
        reference, lambda: function(loss_agg_mode=config.loss_agg_mode, **arguments)
    )
    if not (
        isinstance(result, tuple)
        and len(result) == 2
        and isinstance(result[0], torch.Tensor)
        and isinstance(result[1], Mapping)
    ):
        raise PluginError(
            f"{reference}: returned {described(result)}: return (loss, metrics), a tensor and a "
            "dict"
        )
    value, metrics = result
    if value.numel() != 1 or not torch.isfinite(value).all():
        raise PluginError(
            f"{reference}: its loss is {value.detach().tolist()}: return one finite number, e.g. "
            "with verl's agg_loss(losses, response_mask, ...)"
        )
    if not_numbers := [key for key, figure in metrics.items() if not is_number(figure)]:
        raise PluginError(
            f"{reference}: its metric {not_numbers[0]!r} is {metrics[not_numbers[0]]!r}: return a "
            "number"
        )
    if not value.requires_grad:
        raise PluginError(
            f"{reference}: its loss has no gradient: compute it from log_prob, without detach() "
            "or no_grad()"
        )
    value.backward()
    gradient = torch.zeros_like(new) if new.grad is None else new.grad
    if not torch.isfinite(gradient).all():
        raise PluginError(f"{reference}: its gradient is not finite")
    if gradient[~mask].any():
        raise PluginError(
            f"{reference}: tokens outside response_mask have a gradient: average with verl's "
            "agg_loss(losses, response_mask, ...)"
        )
    if not gradient[mask].any():
        raise PluginError(f"{reference}: its gradient is 0 for every token")
    return f"loss {value.item():.4f} on {len(LENGTHS)} completions, its gradient within the mask"


def advantage(function: Any, reference: str, tiny_training: TinyTraining) -> str:
    """Compute advantages for two problems with three and two completions.

    A further row has an empty mask: verl pads batches with such rows.
    """
    from verl.trainer.ppo.ray_trainer import compute_advantage

    check_signature(function, reference, ADVANTAGE)
    lengths, rewards = [3, 2, 1, 2, 3, 0], [1.0, 0.0, 0.5, -1.0, 1.0, 0.0]
    mask = mask_of(lengths).float()
    token_rewards = torch.zeros_like(mask)
    for row, (length, reward) in enumerate(zip(lengths, rewards, strict=True)):
        token_rewards[row, max(0, length - 1)] = reward
    data = DataProto.from_single_dict({"response_mask": mask, "token_level_rewards": token_rewards})
    data.non_tensor_batch["uid"] = np.array(["a", "a", "a", "b", "b", "padding"], dtype=object)
    algorithm = tiny_training.config.algorithm
    result = run_user_code(
        reference,
        lambda: compute_advantage(
            data, reference, gamma=algorithm.gamma, lam=algorithm.lam, config=algorithm
        ),
    )
    for name in ("advantages", "returns"):
        values = result.batch[name]
        if not isinstance(values, torch.Tensor) or values.shape != mask.shape:
            raise PluginError(
                f"{reference}: its {name} are {described(values)}, token_level_rewards has "
                f"{tuple(mask.shape)}: return the same shape"
            )
        if not torch.isfinite(values).all():
            raise PluginError(
                f"{reference}: its {name} are not finite: handle rows with an empty mask, which "
                "verl adds as padding"
            )
    advantages = result.batch["advantages"] * mask
    if not advantages.any():
        raise PluginError(f"{reference}: its advantages are all 0 although rewards differ")
    return (
        f"advantages from {advantages.min().item():.3f} to {advantages.max().item():.3f} on 5 "
        "completions and a row of padding"
    )


def dataset(cls: Any, reference: str, tiny_training: TinyTraining) -> str:
    """Load a file of six problems, and collate two rows as verl's dataloader does."""
    from torch.utils.data import Dataset
    from verl.utils.dataset.rl_dataset import collate_fn

    check_subclass(cls, reference, Dataset)
    check_signature(cls, reference, DATASET)
    rows = run_user_code(reference, lambda: tiny_training.dataset)
    if not (size := run_user_code(reference, lambda: len(rows))):
        raise PluginError(
            f"{reference}: has no rows for a file of {len(tiny_training.problems)} problems"
        )
    items = [run_user_code(reference, partial(rows.__getitem__, at)) for at in (0, size - 1)]
    for item in items:
        if missing := [key for key in ROW if key not in item]:
            raise PluginError(
                f"{reference}: a row has no {', '.join(missing)}: extend the row of "
                "RLHFDataset.__getitem__"
            )
        run_user_code(
            reference,
            partial(
                tiny_training.tokenizer.apply_chat_template,
                list(item["raw_prompt"]),
                add_generation_prompt=True,
            ),
        )
        run_user_code(
            reference, partial(task_from_ground_truth, item["reward_model"]["ground_truth"])
        )
    run_user_code(reference, lambda: collate_fn(items))
    return (
        f"{size} rows of a file of {len(tiny_training.problems)}, e.g. "
        f"{str(items[0]['raw_prompt'][-1]['content'])[:60]!r}"
    )


def sampler(cls: Any, reference: str, tiny_training: TinyTraining) -> str:
    """Run three steps of draws and results.

    A sampler resumed after the first must draw the same rows.
    """
    check_signature(cls, reference, SAMPLER)
    if missing := [
        name
        for name in ("draw", "observe", "state_dict", "load_state_dict")
        if not callable(getattr(cls, name, None))
    ]:
        raise PluginError(
            f"{reference}: implement {', '.join(missing)} "
            "(described in verl_jobs/curriculum/own_sampler.py)"
        )
    expected = [
        ExpectedPassRate(problem.problem_id, rate=0.5, passed=1, n=2, weight=1.0)
        for problem in tiny_training.problems
    ]
    make = partial(OwnTable, reference, expected, steps=3, seed=1)
    first, resumed = run_user_code(reference, make), run_user_code(reference, make)
    run_user_code(reference, partial(_draw, first))
    state = run_user_code(reference, lambda: pickle.loads(pickle.dumps(first.state_dict())))
    run_user_code(reference, partial(resumed.load_state_dict, state))
    rows, resumed_rows = (
        [run_user_code(reference, partial(_draw, table)) for _ in range(2)]
        for table in (first, resumed)
    )
    if rows != resumed_rows:
        raise PluginError(
            f"{reference}: drew {resumed_rows} after load_state_dict, {rows} without a resume: "
            "state_dict must hold everything that draw() reads"
        )
    return f"drew rows {rows} of {len(expected)}, and the same ones after a resume"


def _draw(table: OwnTable) -> list[int]:
    """Run a step of three problems with two completions each."""
    rows = table.draw(3)
    table.observe(
        [(table.ids[row], (row + sample) % 2 == 0) for row in rows for sample in range(2)]
    )
    return rows


STEPS: dict[str, Callable[[Any, str, TinyTraining], str]] = {
    "loss": loss,
    "advantage": advantage,
    "dataset": dataset,
    "sampler": sampler,
    "reward_manager": reward_manager,
    "agent_loop": agent_loop,
}
