"""Dry runs of reward managers and agent loops."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict
from verl import DataProto

from verl_jobs.config.references import (
    PluginError,
)
from verl_jobs.plugins.dry_run import (
    _array,
    _is_number,
    _kind,
    asked,
    is_subclass,
    takes,
)
from verl_jobs.plugins.tiny_training import TinyTraining

MANAGER = (
    "config",
    "tokenizer",
    "compute_score",
    "reward_router_address",
    "reward_model_tokenizer",
)


def reward_manager(cls: Any, reference: str, tiny_training: TinyTraining) -> str:
    """Score a correct, a wrong and an empty completion.

    The correct one must get the highest reward.
    """
    from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

    is_subclass(cls, reference, RewardManagerBase)
    takes(cls, reference, MANAGER)
    found = asked(reference, lambda: asyncio.run(_paid(tiny_training)))
    for said in found:
        if not (
            isinstance(said, Mapping)
            and _is_number(said.get("reward_score"))
            and isinstance(said.get("reward_extra_info"), Mapping)
        ):
            raise PluginError(
                f'{reference}: gave {said!r}: return {{"reward_score": number, '
                f'"reward_extra_info": {{"acc": 0 or 1, ...}}}}'
            )
        if "acc" not in said["reward_extra_info"]:
            raise PluginError(
                f'{reference}: reward_extra_info has no "acc", 1.0 for a solved problem else 0.0: '
                "checkpoints are chosen by it"
            )
    if len({tuple(sorted(said["reward_extra_info"])) for said in found}) > 1:
        raise PluginError(
            f"{reference}: reward_extra_info has other keys from answer to answer: verl needs the "
            "same"
        )
    right, wrong, empty = (float(said["reward_score"]) for said in found)
    if right <= max(wrong, empty):
        raise PluginError(
            f"{reference}: pays {right:g} for a right answer, {wrong:g} for a wrong one, "
            f"{empty:g} for none: the right one must get most"
        )
    return f"pays {right:g} for a right answer, {wrong:g} for a wrong one, {empty:g} for none"


async def _paid(tiny_training: TinyTraining) -> list[Any]:
    from verl.trainer.ppo.reward import load_reward_manager

    manager = load_reward_manager(
        tiny_training.config,
        tiny_training.tokenizer,
        reward_router_address=None,
        reward_model_tokenizer=None,
    )
    problem = tiny_training.problems[0]
    answers = (
        f"```python\n{problem.solutions[0]}\n```",
        f"```python\ndef {problem.entry_point}(*_):\n    return None\n```",
        "",
    )
    return [await manager.run_single(_rollout(tiny_training, answer)) for answer in answers]


def _rollout(tiny_training: TinyTraining, answer: str) -> DataProto:
    """Return a completion in the form that verl passes to a reward manager.

    Follows agent_loop.py, `_compute_score`.
    """
    row = tiny_training.dataset[0]
    prompt = tiny_training.tokenizer.apply_chat_template(
        list(row["raw_prompt"]), add_generation_prompt=True, return_dict=False
    )
    response = [
        *tiny_training.tokenizer.encode(answer, add_special_tokens=False),
        tiny_training.tokenizer.eos_token_id,
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


def agent_loop(cls: Any, reference: str, tiny_training: TinyTraining) -> str:
    """Run one rollout with an untrained model, decoded in this process by the CPU engine."""
    from verl.experimental.agent_loop import AgentLoopBase

    is_subclass(cls, reference, AgentLoopBase)
    engine = Recorded(tiny_training)
    said = asked(reference, lambda: asyncio.run(_rolled_out(cls, tiny_training, engine)))
    for output in said if isinstance(said, list) else [said]:
        _check_output(output, reference, tiny_training, engine)
    return f"wrote {len(engine.written)} tokens in {engine.calls} turn{'s' * (engine.calls != 1)}"


class Recorded:
    """verl's engine client, served by our engine in this process.

    Records the tokens that the policy generated.
    """

    def __init__(self, tiny_training: TinyTraining) -> None:
        from verl_jobs.cpu.rollout import HFServer

        rollout = tiny_training.config.actor_rollout_ref.rollout
        keys = ("prompt_length", "response_length", "max_num_seqs", "seed")
        self.server = HFServer(
            str(tiny_training.model), {key: rollout[key] for key in keys}, threads=1
        )
        self.written: list[int] = []
        self.calls = 0

    async def generate(
        self, request_id: str, *, prompt_ids: Any, sampling_params: dict[str, Any], **more: Any
    ) -> Any:
        output = await self.server.generate(prompt_ids, sampling_params, request_id, **more)
        self.written += output.token_ids
        self.calls += 1
        return output


async def _rolled_out(cls: Any, tiny_training: TinyTraining, engine: Recorded) -> Any:
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap
    from verl.utils.dataset.rl_dataset import get_dataset_class

    loop = cls(
        name="own",
        trainer_config=DictConfigWrap(tiny_training.config),
        server_manager=engine,
        tokenizer=tiny_training.tokenizer,
        processor=None,
        hf_model_type="qwen2",
        dataset_cls=get_dataset_class(tiny_training.config.data),
        data_config=DictConfigWrap(tiny_training.config.data),
        tools=ToolListWrap([]),
    )
    row = {key: value for key, value in tiny_training.dataset[0].items() if key != "dummy_tensor"}
    sampling = {
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": -1,
        "repetition_penalty": 1.0,
        "logprobs": True,
    }
    return await loop.run(sampling, **row, uid="trial", global_steps=1, session_id=0)


def _check_output(
    output: Any, reference: str, tiny_training: TinyTraining, engine: Recorded
) -> None:
    from verl.experimental.agent_loop import AgentLoopOutput

    if not isinstance(output, AgentLoopOutput):
        raise PluginError(
            f"{reference}: run() gave {_kind(output)}: return verl's AgentLoopOutput, or a list "
            "of them"
        )
    tokens, mask, limit = (
        output.response_ids,
        output.response_mask,
        tiny_training.training.answer_tokens,
    )
    if len(tokens) != len(mask) or not 0 < len(tokens) <= limit:
        raise PluginError(
            f"{reference}: {len(tokens)} response_ids, {len(mask)} in response_mask: give as "
            f"many, 1 to rollout.response_length ({limit})"
        )
    if len(output.prompt_ids) > tiny_training.training.prompt_tokens:
        raise PluginError(
            f"{reference}: {len(output.prompt_ids)} prompt_ids, rollout.prompt_length is "
            f"{tiny_training.training.prompt_tokens}"
        )
    own = [token for token, inside in zip(tokens, mask, strict=True) if inside]
    written = iter(engine.written)
    if not own or not all(token in written for token in own):
        raise PluginError(
            f"{reference}: response_mask is 1 on tokens that the model did not write, or nowhere: "
            "1 for its own tokens, 0 for all others"
        )
    if output.response_logprobs is None or len(output.response_logprobs) != len(tokens):
        raise PluginError(
            f"{reference}: give response_logprobs, one a token of response_ids; 0.0 for tokens "
            "that are not the model's"
        )
    if output.reward_score is not None:
        raise PluginError(
            f"{reference}: sets reward_score: leave it out, so that the reward decides, which the "
            "exploit battery has tried"
        )
