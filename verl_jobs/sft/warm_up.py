"""Supervised fine-tuning: next-token training on demonstrations.

Trains all weights, some of them, or adapters. In: a start checkpoint, chats (prompt,
demonstration). Out: a Hugging Face folder in fp32. After a kill it resumes from its last state and
produces the same bytes. verl's own SFT trainer also runs on a CPU, but takes twice the time for a
model of this size (docs/decisions.md).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from artifacts.section import Section
from problems.chat_template import rendered
from verl_jobs.config.lora import (
    ADAPTER,
    Lora,
    add_adapter,
    merge_adapter,
    split_adapter,
    write_adapter,
)
from verl_jobs.frozen import freeze
from verl_jobs.sft.generation import savable

SAVE_EVERY_S = 20.0  # interval of saved states, the most work that a kill costs

Prompt = str | list[dict[str, str]]


class WarmUp(Section):
    """Supervised warm-up before reinforcement learning."""

    seed: NonNegativeInt = 1
    """Seed of the order of the batches."""
    splits: tuple[Literal["demonstrations", "train"], ...] = ("demonstrations",)
    """Whose first solutions it learns from; add `train` where a pretrained model does not know the
    form of the answers yet.
    """
    steps: PositiveInt = 600
    """Optimizer steps."""
    batch: PositiveInt = 16
    """Demonstrations per step."""
    learning_rate: PositiveFloat = 4e-3
    """Peak learning rate."""
    optimizer: Literal["muon", "adamw"] = "muon"
    """`muon` trains the matrices inside the blocks by orthogonal steps as large as AdamW's, and the
    rest by AdamW; a model from scratch needs half the steps (docs/measurements/learning.md).
    `adamw` is usual for a pretrained model.
    """
    schedule: Literal["one_cycle", "constant"] = "one_cycle"
    """`one_cycle` rises over the first tenth of the steps and falls to 0; `constant` is for very
    few steps.
    """
    lora: Lora | None = None
    """Train adapters instead of all weights; the checkpoint holds the merged weights, and the
    adapter next to them.
    """
    frozen: tuple[str, ...] = ()
    """Names of parameters that are not trained, e.g. [model.embed_tokens.*, model.layers.0.*]."""
    threads: NonNegativeInt = 2
    """torch's threads on the CPU. Their number affects the last bits of every sum, and so the
    weights; 0: one per core.
    """

    @model_validator(mode="after")
    def check_combination(self) -> WarmUp:
        if self.lora and self.frozen:
            raise ValueError("lora already freezes all other weights: set lora or frozen, not both")
        return self


def warm_up(
    start: Path,
    chats: Sequence[tuple[Prompt, str]],
    config: WarmUp,
    folder: Path,
    on_step: Callable[[int, float], None] | None = None,
    state: Path | None = None,
) -> list[float]:
    """Train on the tokens of the demonstrations; return the loss of each step.

    Writes model and tokenizer to `folder`. chats: (user message, or the messages so far; assistant
    message). on_step gets (steps done, loss). state: progress file of this same work; if it exists,
    training resumes from it, and it is removed at the end. Raises FloatingPointError if the loss is
    not finite, ValueError for names to freeze that the model does not have.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if config.threads:
        torch.set_num_threads(config.threads)
    torch.manual_seed(config.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(start)
    loaded = AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32)
    loaded.generation_config = savable(loaded.generation_config)
    model = _learner(loaded, config).to(device).train()
    rows = [_encode(tokenizer, prompt, demonstration) for prompt, demonstration in chats]
    optimizers = _optimizers(model, config)
    schedules = [_schedule(each, config) for each in optimizers]
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    batches = _batches(
        [len(ids) for ids, _ in rows], config, torch.Generator().manual_seed(config.seed)
    )
    parts = [*optimizers, *schedules]
    losses = _load(state, model, parts) if state and state.exists() else []
    saved_at = time.monotonic()
    for step, indices in enumerate(batches[len(losses) :], len(losses) + 1):
        batch = _collate([rows[i] for i in indices], pad)
        loss = model(**{name: tensor.to(device) for name, tensor in batch.items()}).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for part in parts:
            part.step()
        model.zero_grad()
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(
                f"the warm-up's loss is {losses[-1]} at step {step}: lower warm_up.learning_rate"
            )
        if state and step < config.steps and time.monotonic() - saved_at > SAVE_EVERY_S:
            _save(state, model, parts, losses)
            saved_at = time.monotonic()
        if on_step:
            on_step(step, losses[-1])
    _write(model, tokenizer, config, start, folder)
    if state:
        state.unlink(missing_ok=True)
    return losses


def _learner(model: Any, config: WarmUp) -> Any:
    if config.lora:
        return add_adapter(model, config.lora)
    if config.frozen:
        freeze(model, config.frozen)
    return model


def _optimizers(model: Any, config: WarmUp) -> list[Any]:
    """Return Muon for the matrices inside the blocks (https://kellerjordan.github.io/posts/muon),
    with steps as large as AdamW's (arXiv:2502.16982), and AdamW for all other parameters.
    """
    import torch

    learned = {name: each for name, each in model.named_parameters() if each.requires_grad}
    matrices = {
        name: each
        for name, each in learned.items()
        if config.optimizer == "muon" and not config.lora and ".layers." in name and each.ndim == 2
    }
    rest = [each for name, each in learned.items() if name not in matrices]
    optimizers: list[Any] = []
    if matrices:
        optimizers.append(
            torch.optim.Muon(
                list(matrices.values()),
                lr=config.learning_rate,
                weight_decay=0.01,
                adjust_lr_fn="match_rms_adamw",
            )
        )
    if rest:
        optimizers.append(
            torch.optim.AdamW(rest, lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
        )
    return optimizers


def _schedule(optimizer: Any, config: WarmUp) -> Any:
    import torch

    if config.schedule == "constant" or config.steps < 4:
        return torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
    # torch divides by rise - 1 step
    return torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        config.learning_rate,
        total_steps=config.steps,
        pct_start=max(0.1, 2 / config.steps),
        cycle_momentum=False,
    )


def _write(model: Any, tokenizer: Any, config: WarmUp, start: Path, folder: Path) -> None:
    """Save the model: merged weights if adapters were trained, and the adapter next to them."""
    tokenizer.save_pretrained(folder)
    if not config.lora:
        model.save_pretrained(folder)
        return
    weights, adapter = split_adapter(model.state_dict())
    bare = model.unload()
    bare.load_state_dict(merge_adapter(weights, adapter, config.lora.scale))
    bare.save_pretrained(folder)
    write_adapter(
        folder / ADAPTER,
        {name: tensor.cpu() for name, tensor in adapter.items()},
        config.lora,
        base=str(start),
    )


def _save(path: Path, model: Any, parts: list[Any], losses: list[float]) -> None:
    """Save the state under a temporary name, then rename it: a kill leaves the old or the new one.

    parts: optimizers and schedules.
    """
    import torch

    learned = {
        name: parameter.detach()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }
    state = {
        "learned": learned,
        "parts": [part.state_dict() for part in parts],
        "losses": losses,
        "rng": torch.get_rng_state(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    torch.save(state, temporary)
    temporary.replace(path)


def _load(path: Path, model: Any, parts: list[Any]) -> list[float]:
    import torch

    state = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(state["learned"], strict=False)
    for part, saved in zip(parts, state["parts"], strict=True):
        part.load_state_dict(saved)
    torch.set_rng_state(state["rng"])
    losses: list[float] = state["losses"]
    return losses


def _encode(tokenizer: Any, prompt: Prompt, demonstration: str) -> tuple[list[int], list[int]]:
    """Return token ids and labels.

    The ids are those of the rendered chat: what the template does not write, such as a second BOS
    token, is not added. Labels are -100 on the prompt, so that only the demonstration is trained.
    """
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    head = rendered(tokenizer, messages)
    prompt_ids, completion_ids = (
        tokenizer.encode(text, add_special_tokens=False)
        for text in (head, demonstration + tokenizer.eos_token)
    )
    return prompt_ids + completion_ids, [-100] * len(prompt_ids) + completion_ids


def _batches(lengths: list[int], config: WarmUp, generator: Any) -> list[list[int]]:
    """Return batches of rows of similar length, in random order.

    There is little padding, and each row comes once an epoch: if their number is no multiple of
    `config.batch`, some batches have one row less.
    """
    import torch

    batches: list[list[int]] = []
    if not lengths:
        raise ValueError(
            "the warm-up has no demonstrations: add problems of the split demonstrations, or "
            "raise family.demonstrations"
        )
    count = math.ceil(len(lengths) / config.batch)
    while len(batches) < config.steps:
        jitter = torch.rand(len(lengths), generator=generator) * 12
        order = sorted(range(len(lengths)), key=lambda i: lengths[i] + float(jitter[i]))
        epoch = [
            order[k * len(order) // count : (k + 1) * len(order) // count] for k in range(count)
        ]
        batches += [epoch[i] for i in torch.randperm(len(epoch), generator=generator).tolist()]
    return batches[: config.steps]


def _collate(rows: list[tuple[list[int], list[int]]], pad: int) -> dict[str, Any]:
    import torch

    width = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in rows])
    labels = torch.tensor([labels + [-100] * (width - len(labels)) for _, labels in rows])
    mask = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows])
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}
