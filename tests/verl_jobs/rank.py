"""Run one rank of verl's actor on random completions.

    torchrun --nproc_per_node=N tests/verl_jobs/rank.py REQUEST

In: REQUEST, a JSON object with these keys:
- model: a Hugging Face folder; training: values that differ from `Training`'s defaults;
- prompt, answer, count: tokens of a prompt and of a completion, and number of completions;
- steps; memory: whether to trace allocations; rollout: whether to decode completions too;
  ragged: whether completions differ in length;
- save: a folder for a checkpoint after the first step; load: such a folder, to resume from.
Out, on rank 0's last line: losses and gradient norms of each update; with `memory` the peak bytes
of each phase in torch's allocator. The overrides are those of a training
(verl_jobs/config/overrides.py); the advantages and the completions of the updates are random.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from verl_jobs.config.environment import environment
from verl_jobs.config.overrides import overrides
from verl_jobs.config.training import Training
from verl_jobs.trainer.rank_save import wait_for_writers


def main(request: dict[str, Any]) -> None:
    training = Training.model_validate(request["training"])
    os.environ.update(environment(training))
    import torch

    torch.set_num_threads(max(1, training.threads))
    trace = (
        torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        )
        if request.get("memory")
        else nullcontext()
    )
    with trace as profiler:
        result = steps(request, training)
    if request.get("memory"):
        result["peak_bytes"] = peaks(profiler)
    if int(os.environ["RANK"]) == 0:
        print(json.dumps(result))
    torch.distributed.destroy_process_group()


def steps(request: dict[str, Any], training: Training) -> dict[str, Any]:
    """Run the requested steps. Return losses and gradient norms, one per update."""
    from hydra import compose, initialize_config_module
    from torch.profiler import record_function
    from verl.workers.engine_workers import ActorRolloutRefWorker

    path = Path(request["model"])
    config_overrides = overrides(
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
        config = compose("ppo_trainer", overrides=config_overrides)
    with record_function("phase: load"):
        worker = ActorRolloutRefWorker(config.actor_rollout_ref, role="actor")
        worker.init_model()
    gc.collect()  # reference cycles of the load hold a copy of the weights until a collection
    losses: list[float] = []
    norms: list[float] = []
    if request.get("load"):
        worker.load_checkpoint(request["load"])
    for step in range(1 if request.get("load") else 0, request["steps"]):
        with record_function("phase: old log-probabilities"):
            worker.compute_log_prob(batch(request, training, step))
        with record_function("phase: update"):
            metrics = worker.update_actor(batch(request, training, step))["metrics"]
        losses += metrics["loss"]  # one per update of the step
        norms += metrics["grad_norm"]
        if request.get("save") and not step:
            worker.save_checkpoint(request["save"], global_step=1)
            wait_for_writers()
    if request.get("rollout"):
        with record_function("phase: rollout"):
            rollout(request)
    return {"losses": losses, "grad_norms": norms}


def rollout(request: dict[str, Any]) -> None:
    """Decode with the CPU engine; every completion has the maximum length."""
    from decoding.batch import Row, decode
    from decoding.checkpoint import load

    checkpoint = load(Path(request["model"]), "cpu")
    group = Training.model_validate(request["training"]).group_size
    prompts = (
        list(range(5 + number, 5 + number + request["prompt"]))
        for number in range(request["count"] // group)
    )
    rows = [Row(p, request["answer"], temperature=1.0) for p in prompts for _ in range(group)]
    decode(checkpoint.model, checkpoint.pad, rows)


def batch(request: dict[str, Any], training: Training, step: int) -> Any:
    """Return this rank's share of a step's completions.

    The completions of each update are the same for any number of ranks.
    """
    import torch
    from verl.utils import tensordict_utils as tu

    generator = torch.Generator().manual_seed(step)
    count, rank, ranks = request["count"], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    longest = request["answer"]
    lengths = (
        torch.randint(longest // 2, longest + 1, (count,), generator=generator).tolist()
        if request.get("ragged")
        else [longest] * count
    )
    prompts = torch.randint(5, 60, (count, request["prompt"]), generator=generator)
    rows = [
        {
            "prompts": prompts[at // training.group_size],
            "responses": torch.randint(5, 60, (length,), generator=generator),
            "response_mask": torch.ones(length, dtype=torch.long),
            "old_log_probs": -torch.rand(length, generator=generator) * 4,
            "advantages": torch.randn(1, generator=generator).expand(length).clone(),
        }
        for at, length in enumerate(lengths)
    ]
    share = rows[rank::ranks]
    for row in share:
        row["input_ids"] = torch.cat([row["prompts"], row["responses"]])
        row["position_ids"] = torch.arange(len(row["input_ids"]))
        row["loss_mask"] = row["response_mask"]
    nested = {
        key: torch.nested.as_nested_tensor([row[key] for row in share], layout=torch.jagged)
        for key in share[0]
    }
    settings = {
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
    return tu.get_tensordict(nested, settings)


def peaks(profiler: Any) -> dict[str, int]:
    """Return the peak of allocated bytes in each phase.

    Replays all allocations and releases of torch's CPU allocator in order of time.
    """
    events = profiler.profiler.kineto_results.events()
    phases = [
        (event.name().removeprefix("phase: "), event.start_ns(), event.end_ns())
        for event in events
        if event.name().startswith("phase: ")
    ]
    changes = sorted(
        (event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"
    )
    allocated, peak = 0, dict.fromkeys((name for name, _, _ in phases), 0)
    for at, change in changes:
        allocated += change
        for name, start, end in phases:
            if start <= at <= end:
                peak[name] = max(peak[name], allocated)
    return peak


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
