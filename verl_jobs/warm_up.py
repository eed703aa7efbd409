"""Supervised warm-up: next-token training on demonstrations, the simplest loop that does it.

In: a start checkpoint, chats (question, demonstration). Out: a Hugging Face folder in fp32. verl's own SFT trainer runs on a CPU as well, and takes
twice the time for a model of this size (docs/decisions.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveFloat, PositiveInt


class WarmUp(BaseModel):
    """Supervised warm-up before reinforcement learning."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    seed: NonNegativeInt = 1
    """Order of the batches."""
    steps: PositiveInt = 800
    """Optimizer steps."""
    batch: PositiveInt = 16
    """Demonstrations a step."""
    learning_rate: PositiveFloat = 4e-3
    """Peak of the one-cycle schedule."""
    threads: NonNegativeInt = 2
    """torch's threads on the CPU. Their number decides the last bits of every sum, and so the weights; 0: one a core."""


def warm_up(
    start: Path, chats: Sequence[tuple[str, str]], config: WarmUp, folder: Path, on_step: Callable[[int, float], None] | None = None
) -> list[float]:
    """Trains on the answer tokens alone; writes model and tokenizer to `folder`; returns the loss of each step.

    chats: (user message, assistant message). on_step gets (steps done, loss).
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if config.threads:
        torch.set_num_threads(config.threads)
    torch.manual_seed(config.seed)
    tokenizer = AutoTokenizer.from_pretrained(start)
    model = AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32).train()
    rows = [_encode(tokenizer, question, answer) for question, answer in chats]
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.learning_rate, total_steps=config.steps, pct_start=0.1)
    generator = torch.Generator().manual_seed(config.seed)
    losses = []
    for step, picked in enumerate(_batches([len(ids) for ids, _ in rows], config, generator), 1):
        loss = model(**_collate([rows[i] for i in picked], tokenizer.pad_token_id)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if on_step:
            on_step(step, losses[-1])
    if not math.isfinite(losses[-1]):
        raise FloatingPointError(f"the warm-up's loss is {losses[-1]} after {config.steps} steps: lower warm_up.learning_rate")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return losses


def _encode(tokenizer: Any, question: str, answer: str) -> tuple[list[int], list[int]]:
    """Token ids, and labels that are -100 on the question: the loss is on the answer alone."""
    head = tokenizer.apply_chat_template([{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True)
    asked, answered = tokenizer.encode(head), tokenizer.encode(answer + tokenizer.eos_token)
    return asked + answered, [-100] * len(asked) + answered


def _batches(lengths: list[int], config: WarmUp, generator: Any) -> list[list[int]]:
    """Batches of rows of similar length, in random order: little padding, each row once an epoch."""
    import torch

    made: list[list[int]] = []
    while len(made) < config.steps:
        jitter = torch.rand(len(lengths), generator=generator) * 12
        order = sorted(range(len(lengths)), key=lambda i: lengths[i] + float(jitter[i]))
        epoch = [order[i : i + config.batch] for i in range(0, len(order) - config.batch + 1, config.batch)]
        made += [epoch[i] for i in torch.randperm(len(epoch), generator=generator).tolist()]
    return made[: config.steps]


def _collate(rows: list[tuple[list[int], list[int]]], pad: int) -> dict[str, Any]:
    import torch

    width = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in rows])
    labels = torch.tensor([labels + [-100] * (width - len(labels)) for _, labels in rows])
    mask = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows])
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}
