"""One rank of verl's own actor on made-up answers: `torchrun --nproc_per_node=N
measurements/rank.py ASKED`, ASKED being JSON.

In: {"model": a Hugging Face folder, "training": what differs of `Training`, "prompt", "answer",
"count": tokens and number of the answers, "steps", "memory": whether allocations are traced,
"rollout": whether answers are decoded too, "save": a folder for a save after the first step,
"load": such a folder, to go on from}. Out, on rank 0's last line: losses and gradient norms of each
update and, where asked for, the peak bytes of each phase by torch's own allocator. The overrides
are those of a run (verl_jobs/config/overrides.py); only rewards and, in the updates, answers are
made up.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from verl_jobs.config.environment import environment
from verl_jobs.config.overrides import overrides
from verl_jobs.config.training import Training


def main(asked: dict[str, Any]) -> None:
    training = Training.model_validate(asked["training"])
    os.environ.update(environment(training))
    import torch

    torch.set_num_threads(max(1, training.threads))
    trace = (
        torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        )
        if asked.get("memory")
        else nullcontext()
    )
    with trace as traced:
        found = steps(asked, training)
    if asked.get("memory"):
        found["peak_bytes"] = peaks(traced)
    if int(os.environ["RANK"]) == 0:
        print(json.dumps(found))
    torch.distributed.destroy_process_group()


def steps(asked: dict[str, Any], training: Training) -> dict[str, Any]:
    from hydra import compose, initialize_config_module
    from torch.profiler import record_function
    from verl.workers.engine_workers import ActorRolloutRefWorker

    path = Path(asked["model"])
    told = overrides(
        training,
        seed=1,
        model=path,
        train=path,
        validation=path,
        folder=path,
        loggers=[],
        name="rank",
    )
    with initialize_config_module(config_module="verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", overrides=told)
    with record_function("phase: load"):
        worker = ActorRolloutRefWorker(config.actor_rollout_ref, role="actor")
        worker.init_model()
    losses: list[float] = []
    norms: list[float] = []
    if asked.get("load"):
        worker.load_checkpoint(asked["load"])
    for step in range(1 if asked.get("load") else 0, asked["steps"]):
        with record_function("phase: old log-probabilities"):
            worker.compute_log_prob(batch(asked, training, step))
        with record_function("phase: update"):
            metrics = worker.update_actor(batch(asked, training, step))["metrics"]
        losses += metrics["loss"]  # of each of the step's updates
        norms += metrics["grad_norm"]
        if asked.get("save") and not step:
            worker.save_checkpoint(asked["save"], global_step=1)
    if asked.get("rollout"):
        with record_function("phase: rollout"):
            rollout(asked)
    return {"losses": losses, "grad_norms": norms}


def rollout(asked: dict[str, Any]) -> None:
    """The CPU engine's own decoding, every answer as long as may be."""
    import torch
    from transformers import AutoModelForCausalLM

    from verl_jobs.decoding import decode_batch

    model = AutoModelForCausalLM.from_pretrained(asked["model"], dtype=torch.float32)
    request = {
        "prompt_ids": list(range(5, 5 + asked["prompt"])),
        "max_tokens": asked["answer"],
        "temperature": 1.0,
        "top_k": -1,
        "top_p": 1.0,
        "stop": [],
    }
    request["uniform"] = [0.5] * asked["answer"]
    decode_batch(model, [request] * asked["count"], set(), 0)


def batch(asked: dict[str, Any], training: Training, step: int) -> Any:
    """This rank's share of the answers of a step. Those of each update are the same whatever the
    number of ranks.
    """
    import torch
    from verl.utils import tensordict_utils as tu

    generator = torch.Generator().manual_seed(step)
    count, rank, ranks = asked["count"], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    longest = asked["answer"]
    lengths = (
        torch.randint(longest // 2, longest + 1, (count,), generator=generator).tolist()
        if asked.get("ragged")
        else [longest] * count
    )
    rows = [
        {
            "prompts": torch.randint(5, 60, (asked["prompt"],), generator=generator),
            "responses": torch.randint(5, 60, (length,), generator=generator),
            "response_mask": torch.ones(length, dtype=torch.long),
            "old_log_probs": -torch.rand(length, generator=generator) * 4,
            "advantages": torch.randn(1, generator=generator).expand(length).clone(),
        }
        for length in lengths
    ]
    mine = rows[rank::ranks]
    for row in mine:
        row["input_ids"] = torch.cat([row["prompts"], row["responses"]])
        row["position_ids"] = torch.arange(len(row["input_ids"]))
        row["loss_mask"] = row["response_mask"]
    nested = {
        key: torch.nested.as_nested_tensor([row[key] for row in mine], layout=torch.jagged)
        for key in mine[0]
    }
    about = {
        "temperature": 1.0,
        "calculate_entropy": False,
        "distillation_use_topk": False,
        "distillation_only": False,
        "global_batch_size": count,
        "mini_batch_size": count // training.scale.updates,
        "epochs": 1,
        "seed": 1,
        "dataloader_kwargs": {"shuffle": False},
        "pad_token_id": 0,
    }
    return tu.get_tensordict(nested, about)


def peaks(traced: Any) -> dict[str, int]:
    """Most bytes alive in each phase: every allocation and release of torch's CPU allocator, in the
    order of time.
    """
    events = traced.profiler.kineto_results.events()
    phases = [
        (event.name().removeprefix("phase: "), event.start_ns(), event.end_ns())
        for event in events
        if event.name().startswith("phase: ")
    ]
    changes = sorted(
        (event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"
    )
    alive, most = 0, dict.fromkeys((name for name, _, _ in phases), 0)
    for at, change in changes:
        alive += change
        for name, start, end in phases:
            if start <= at <= end:
                most[name] = max(most[name], alive)
    return most


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
