"""One step of each kind of part that a user may bring, on small tensors or a tiny model, by verl's own functions and with its own config.

In: the part, its reference, a `Bench` (verl_jobs/plugins/plugin_check.py). Out: a sentence on what it gave. Each raises PluginError with what is wrong and the mend.
"""

from __future__ import annotations

import asyncio
import inspect
import pickle
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tensordict import TensorDict
from verl import DataProto

from problems.difficulty.pass_rate_prior import Expected
from rewards.question import task_from_ground_truth
from verl_jobs.config.references import (
    PluginError,
    own_algorithms,  # noqa: F401  # verl finds references in its registries
    source,
)
from verl_jobs.curriculum.own_sampler import OwnTable

if TYPE_CHECKING:
    from verl_jobs.plugins.plugin_check import Bench

LENGTHS = [5, 3, 1, 4]
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
MANAGER = (
    "config",
    "tokenizer",
    "compute_score",
    "reward_router_address",
    "reward_model_tokenizer",
)


def takes(part: Callable[..., Any], reference: str, names: Sequence[str]) -> None:
    """Raises PluginError unless `part` may be called with arguments of these names."""
    try:
        inspect.signature(part).bind(**dict.fromkeys(names))
    except TypeError as error:
        raise PluginError(
            f"{reference}: {error}; verl calls it with {', '.join(names)} by name: take these, and **_ for what you do not read"
        ) from error


def asked(reference: str, step: Callable[[], Any]) -> Any:
    """What a step of the user's code gives. Raises PluginError, with the line of their file, for whatever it raises."""
    try:
        return step()
    except PluginError:
        raise
    except Exception as error:
        own = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(source(reference))
        ]
        where, cause = f" at line {own[-1]}" if own else "", error.__cause__ or error
        raise PluginError(
            f"{reference}: its dry step raised{where} {type(cause).__name__}: {cause}"
        ) from error


def is_subclass(part: Any, reference: str, base: type) -> None:
    if not (inspect.isclass(part) and issubclass(part, base)):
        raise PluginError(
            f"{reference}: write a class that inherits from {base.__module__}.{base.__qualname__}"
        )
    if missing := sorted(getattr(part, "__abstractmethods__", ())):
        raise PluginError(
            f"{reference}: write its method {', '.join(missing)}, which {base.__qualname__} leaves to you"
        )


def loss(function: Any, reference: str, bench: Bench) -> str:
    """Four answers of unequal length; the loss is differentiated to the log-probabilities."""
    from verl.utils.config import omega_conf_to_dataclass

    takes(function, reference, LOSS)
    mask = _mask(LENGTHS)
    config = omega_conf_to_dataclass(bench.config.actor_rollout_ref.actor)
    config.global_batch_info.update(
        dp_size=1,
        batch_num_tokens=int(mask.sum()),
        global_batch_size=len(LENGTHS),
        loss_scale_factor=config.loss_scale_factor,
    )
    draw = torch.Generator().manual_seed(1)
    old = -torch.rand(mask.shape, generator=draw)
    new = (old + 0.1 * torch.randn(mask.shape, generator=draw)).requires_grad_()
    signs = torch.tensor([1.0, -1.0, 0.5, -0.5]).unsqueeze(1).expand(mask.shape)
    given = {
        "old_log_prob": old,
        "log_prob": new,
        "advantages": signs,
        "response_mask": mask,
        "config": config,
        "rollout_is_weights": None,
    }
    said = asked(reference, lambda: function(loss_agg_mode=config.loss_agg_mode, **given))
    if not (
        isinstance(said, tuple)
        and len(said) == 2
        and isinstance(said[0], torch.Tensor)
        and isinstance(said[1], Mapping)
    ):
        raise PluginError(
            f"{reference}: gave {_kind(said)}: return (loss, metrics), a tensor and a dict"
        )
    value, metrics = said
    if value.numel() != 1 or not torch.isfinite(value).all():
        raise PluginError(
            f"{reference}: its loss is {value.detach().tolist()}: give one finite number, e.g. by verl's agg_loss(losses, response_mask, ...)"
        )
    if unequal := [key for key, figure in metrics.items() if not _is_number(figure)]:
        raise PluginError(
            f"{reference}: its metric {unequal[0]!r} is {metrics[unequal[0]]!r}: give numbers"
        )
    if not value.requires_grad:
        raise PluginError(
            f"{reference}: its loss has no gradient: compute it from log_prob, without detach() or no_grad()"
        )
    value.backward()
    gradient = torch.zeros_like(new) if new.grad is None else new.grad
    if not torch.isfinite(gradient).all():
        raise PluginError(f"{reference}: its gradient is not finite")
    if gradient[~mask].any():
        raise PluginError(
            f"{reference}: tokens outside response_mask have a gradient: average with verl's agg_loss(losses, response_mask, ...)"
        )
    if not gradient[mask].any():
        raise PluginError(
            f"{reference}: its gradient is 0 for every token: nothing would be learned"
        )
    return f"loss {value.item():.4f} on {len(LENGTHS)} answers, its gradient within the mask"


def advantage(function: Any, reference: str, bench: Bench) -> str:
    """Two problems with three and two answers, and a row with an empty mask, as verl pads batches."""
    from verl.trainer.ppo.ray_trainer import compute_advantage

    takes(function, reference, ADVANTAGE)
    lengths, rewards = [3, 2, 1, 2, 3, 0], [1.0, 0.0, 0.5, -1.0, 1.0, 0.0]
    mask = _mask(lengths).float()
    paid = torch.zeros_like(mask)
    for row, (length, reward) in enumerate(zip(lengths, rewards, strict=True)):
        paid[row, max(0, length - 1)] = reward
    data = DataProto.from_single_dict({"response_mask": mask, "token_level_rewards": paid})
    data.non_tensor_batch["uid"] = np.array(["a", "a", "a", "b", "b", "padding"], dtype=object)
    algorithm = bench.config.algorithm
    done = asked(
        reference,
        lambda: compute_advantage(
            data, reference, gamma=algorithm.gamma, lam=algorithm.lam, config=algorithm
        ),
    )
    for name in ("advantages", "returns"):
        values = done.batch[name]
        if not isinstance(values, torch.Tensor) or values.shape != mask.shape:
            raise PluginError(
                f"{reference}: its {name} are {_kind(values)}, token_level_rewards {tuple(mask.shape)}: give the same shape"
            )
        if not torch.isfinite(values).all():
            raise PluginError(
                f"{reference}: its {name} are not finite; a row may have an empty mask, for verl pads batches with such: divide with care"
            )
    found = done.batch["advantages"] * mask
    if not found.any():
        raise PluginError(
            f"{reference}: its advantages are all 0 where rewards differ: nothing would be learned"
        )
    return f"advantages from {found.min().item():.3f} to {found.max().item():.3f} on 5 answers and a row of padding"


def dataset(cls: Any, reference: str, bench: Bench) -> str:
    """A file of six problems; two rows are put together as verl's dataloader does."""
    from torch.utils.data import Dataset
    from verl.utils.dataset.rl_dataset import collate_fn

    is_subclass(cls, reference, Dataset)
    takes(cls, reference, DATASET)
    rows = asked(reference, lambda: bench.dataset)
    if not (size := asked(reference, lambda: len(rows))):
        raise PluginError(f"{reference}: is empty for a file of {len(bench.problems)} problems")
    items = [asked(reference, partial(rows.__getitem__, at)) for at in (0, size - 1)]
    for item in items:
        if missing := [key for key in ROW if key not in item]:
            raise PluginError(
                f"{reference}: a row has no {', '.join(missing)}: begin with what RLHFDataset.__getitem__ gives"
            )
        asked(
            reference,
            partial(
                bench.tokenizer.apply_chat_template,
                list(item["raw_prompt"]),
                add_generation_prompt=True,
            ),
        )
        asked(reference, partial(task_from_ground_truth, item["reward_model"]["ground_truth"]))
    asked(reference, lambda: collate_fn(items))
    return f"{size} rows of a file of {len(bench.problems)}, e.g. {str(items[0]['raw_prompt'][-1]['content'])[:60]!r}"


def sampler(cls: Any, reference: str, bench: Bench) -> str:
    """Three steps of draws and verdicts; a sampler that was resumed after the first must draw as this one does."""
    takes(cls, reference, SAMPLER)
    if missing := [
        name
        for name in ("draw", "observe", "state_dict", "load_state_dict")
        if not callable(getattr(cls, name, None))
    ]:
        raise PluginError(
            f"{reference}: write its method {', '.join(missing)} (verl_jobs/curriculum/own_sampler.py says what each is asked)"
        )
    expected = [
        Expected(problem.problem_id, rate=0.5, passed=1, n=2, weight=1.0)
        for problem in bench.problems
    ]
    make = partial(OwnTable, reference, expected, steps=3, seed=1)
    first, resumed = asked(reference, make), asked(reference, make)
    asked(reference, partial(_draw, first))
    state = asked(reference, lambda: pickle.loads(pickle.dumps(first.state_dict())))
    asked(reference, partial(resumed.load_state_dict, state))
    drawn, again = (
        [asked(reference, partial(_draw, table)) for _ in range(2)] for table in (first, resumed)
    )
    if drawn != again:
        raise PluginError(
            f"{reference}: drew {again} after load_state_dict, and {drawn} where it went on: keep in state_dict all that draw() reads"
        )
    return f"drew rows {drawn} of {len(expected)}, and the same after it was resumed"


def _draw(table: OwnTable) -> list[int]:
    """A step of three problems with two answers each."""
    rows = table.draw(3)
    table.observe(
        [(table.ids[row], (row + answer) % 2 == 0) for row in rows for answer in range(2)]
    )
    return rows


def reward_manager(cls: Any, reference: str, bench: Bench) -> str:
    """A right answer, a wrong one and an empty one to a problem: the right one must be worth most."""
    from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

    is_subclass(cls, reference, RewardManagerBase)
    takes(cls, reference, MANAGER)
    found = asked(reference, lambda: asyncio.run(_paid(bench)))
    for said in found:
        if not (
            isinstance(said, Mapping)
            and _is_number(said.get("reward_score"))
            and isinstance(said.get("reward_extra_info"), Mapping)
        ):
            raise PluginError(
                f'{reference}: gave {said!r}: return {{"reward_score": number, "reward_extra_info": {{"acc": 0 or 1, ...}}}}'
            )
        if "acc" not in said["reward_extra_info"]:
            raise PluginError(
                f'{reference}: reward_extra_info has no "acc", 1.0 for a solved problem else 0.0: checkpoints are chosen by it'
            )
    if len({tuple(sorted(said["reward_extra_info"])) for said in found}) > 1:
        raise PluginError(
            f"{reference}: reward_extra_info has other keys from answer to answer: verl needs the same"
        )
    right, wrong, empty = (float(said["reward_score"]) for said in found)
    if right <= max(wrong, empty):
        raise PluginError(
            f"{reference}: pays {right:g} for a right answer, {wrong:g} for a wrong one, {empty:g} for none: the right one must get most"
        )
    return f"pays {right:g} for a right answer, {wrong:g} for a wrong one, {empty:g} for none"


async def _paid(bench: Bench) -> list[Any]:
    from verl.trainer.ppo.reward import load_reward_manager

    manager = load_reward_manager(
        bench.config, bench.tokenizer, reward_router_address=None, reward_model_tokenizer=None
    )
    problem = bench.problems[0]
    answers = (
        f"```python\n{problem.solutions[0]}\n```",
        f"```python\ndef {problem.entry_point}(*_):\n    return None\n```",
        "",
    )
    return [await manager.run_single(_rollout(bench, answer)) for answer in answers]


def _rollout(bench: Bench, answer: str) -> DataProto:
    """As verl hands an answer to a reward manager (agent_loop.py, `_compute_score`)."""
    row = bench.dataset[0]
    prompt = bench.tokenizer.apply_chat_template(
        list(row["raw_prompt"]), add_generation_prompt=True, return_dict=False
    )
    response = [
        *bench.tokenizer.encode(answer, add_special_tokens=False),
        bench.tokenizer.eos_token_id,
    ]
    prompts, responses = torch.tensor([prompt]), torch.tensor([response])
    ids = torch.cat([prompts, responses], dim=1)
    tensors = {
        "prompts": prompts,
        "responses": responses,
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
    }
    tensors["position_ids"] = torch.arange(ids.shape[1]).unsqueeze(0)
    told = {key: value for key, value in row.items() if key != "dummy_tensor"}
    told |= {
        "uid": "trial",
        "global_steps": 1,
        "__num_turns__": 2,
        "tool_extra_fields": {},
        "prompt_len": len(prompt),
        "response_len": len(response),
    }
    return DataProto(
        batch=TensorDict(tensors, batch_size=1),
        non_tensor_batch={key: _array(value) for key, value in told.items()},
    )


def agent_loop(cls: Any, reference: str, bench: Bench) -> str:
    """One rollout on a model that knows nothing, decoded in this process by the engine of the CPU."""
    from verl.experimental.agent_loop import AgentLoopBase

    is_subclass(cls, reference, AgentLoopBase)
    engine = Recorded(bench)
    said = asked(reference, lambda: asyncio.run(_rolled_out(cls, bench, engine)))
    for output in said if isinstance(said, list) else [said]:
        _check_output(output, reference, bench, engine)
    return f"wrote {len(engine.written)} tokens in {engine.calls} turn{'s' * (engine.calls != 1)}"


class Recorded:
    """verl's client of an engine: ours, in this process; it remembers which tokens the policy wrote."""

    def __init__(self, bench: Bench) -> None:
        from verl_jobs.cpu.rollout import HFServer

        rollout = bench.config.actor_rollout_ref.rollout
        keys = ("prompt_length", "response_length", "max_num_seqs", "seed")
        self.server = HFServer(str(bench.model), {key: rollout[key] for key in keys}, threads=1)
        self.written: list[int] = []
        self.calls = 0

    async def generate(
        self, request_id: str, *, prompt_ids: Any, sampling_params: dict[str, Any], **more: Any
    ) -> Any:
        output = await self.server.generate(prompt_ids, sampling_params, request_id, **more)
        self.written += output.token_ids
        self.calls += 1
        return output


async def _rolled_out(cls: Any, bench: Bench, engine: Recorded) -> Any:
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap
    from verl.utils.dataset.rl_dataset import get_dataset_class

    loop = cls(
        name="own", trainer_config=DictConfigWrap(bench.config), server_manager=engine, tokenizer=bench.tokenizer, processor=None,
        hf_model_type="qwen2", dataset_cls=get_dataset_class(bench.config.data), data_config=DictConfigWrap(bench.config.data),
        tools=ToolListWrap([]),
    )  # fmt: skip
    row = {key: value for key, value in bench.dataset[0].items() if key != "dummy_tensor"}
    sampling = {
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": -1,
        "repetition_penalty": 1.0,
        "logprobs": True,
    }
    return await loop.run(sampling, **row, uid="trial", global_steps=1, session_id=0)


def _check_output(output: Any, reference: str, bench: Bench, engine: Recorded) -> None:
    from verl.experimental.agent_loop import AgentLoopOutput

    if not isinstance(output, AgentLoopOutput):
        raise PluginError(
            f"{reference}: run() gave {_kind(output)}: return verl's AgentLoopOutput, or a list of them"
        )
    tokens, mask, limit = output.response_ids, output.response_mask, bench.training.answer_tokens
    if len(tokens) != len(mask) or not 0 < len(tokens) <= limit:
        raise PluginError(
            f"{reference}: {len(tokens)} response_ids, {len(mask)} in response_mask: give as many, 1 to rollout.response_length ({limit})"
        )
    if len(output.prompt_ids) > bench.training.prompt_tokens:
        raise PluginError(
            f"{reference}: {len(output.prompt_ids)} prompt_ids, rollout.prompt_length is {bench.training.prompt_tokens}"
        )
    own = [token for token, inside in zip(tokens, mask, strict=True) if inside]
    written = iter(engine.written)
    if not own or not all(token in written for token in own):
        raise PluginError(
            f"{reference}: response_mask is 1 on tokens that the model did not write, or nowhere: 1 for its own tokens, 0 for all others"
        )
    if output.response_logprobs is None or len(output.response_logprobs) != len(tokens):
        raise PluginError(
            f"{reference}: give response_logprobs, one a token of response_ids; 0.0 for tokens that are not the model's"
        )
    if output.reward_score is not None:
        raise PluginError(
            f"{reference}: sets reward_score: leave it out, so that the reward decides, which the exploit battery has tried"
        )


def _mask(lengths: list[int]) -> torch.Tensor:
    return torch.tensor([[at < length for at in range(max(lengths))] for length in lengths])


def _array(value: Any) -> Any:
    array = np.empty(1, dtype=object)
    array[0] = value
    return array


def _is_number(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.numel() == 1 and bool(torch.isfinite(value).all())
    return isinstance(value, int | float | np.number) and bool(np.isfinite(value))


def _kind(value: Any) -> str:
    return (
        f"a tensor of shape {tuple(value.shape)}"
        if isinstance(value, torch.Tensor)
        else f"{type(value).__name__}"
    )


STEPS: dict[str, Callable[[Any, str, Bench], str]] = {
    "loss": loss, "advantage": advantage, "dataset": dataset, "sampler": sampler, "reward_manager": reward_manager, "agent_loop": agent_loop,
}  # fmt: skip
