"""Adaptation to a new problem family: the settings of the comparison, and the gradient steps.

In: a start checkpoint and k examples. Out: an adapted checkpoint. The alternative, examples in the
prompt, needs no training (evaluation/benchmarks/few_shot.py); `experiments/adaptation.py` measures
both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from artifacts.section import Section
from verl_jobs.config.lora import Lora
from verl_jobs.frozen import lower_half
from verl_jobs.sft.warm_up import WarmUp, warm_up

Way = Literal["prompt", "all", "lora", "frozen"]
# an adapter's best learning rate is about ten times that of full training (Schulman et al. 2025,
# LoRA Without Regret)
LORA_FACTOR = 10.0


class Adaptation(Section):
    """What `ratchet adapt` compares: k examples in the prompt, and k gradient steps on them."""

    seed: NonNegativeInt = 1
    """Seed of the selected examples and of the batches; further seeds count up from it."""
    seeds: PositiveInt = 1
    """Number of selections of examples; the interval is over problems, each with its mean over the
    selections.
    """
    shots: tuple[PositiveInt, ...] = Field((1, 2, 4, 16, 64), min_length=1)
    """k: examples, and gradient steps. A prompt that exceeds the model's positions is reported."""
    ways: tuple[Way, ...] = Field(("prompt", "all", "lora", "frozen"), min_length=1)
    """`prompt`: examples in the prompt; gradient steps on `all` weights, on `lora` adapters, or
    with the `frozen` parameters unchanged.
    """
    families: tuple[Literal["digits", "parity", "slices", "tables"], ...] = Field(
        ("digits", "parity", "slices", "tables"), min_length=1
    )
    """Families of the embedded problems (problems/embedded/families.py); ignored with problems of
    your own.
    """
    problems: PositiveInt = 100
    """Held-out problems per family."""
    batch: PositiveInt = 16
    """Maximum number of examples in one gradient step."""
    learning_rate: PositiveFloat = 1e-3
    """Constant learning rate of full training; adapters get ten times as much. 1e-5 is usual at 0.5
    B.
    """
    lora: Lora = Lora()
    frozen: tuple[str, ...] = ()
    """Names of parameters that `frozen` leaves unchanged; empty: the embedding and the lower half
    of the blocks.
    """
    threads: NonNegativeInt = 2
    """torch's threads on the CPU; a repeatable comparison needs a fixed number. 0: one per core."""


def learn(
    start: Path,
    chats: Sequence[tuple[str, str]],
    way: Way,
    config: Adaptation,
    seed: int,
    folder: Path,
) -> list[float]:
    """Make one gradient step per chat, on these chats only.

    Write the checkpoint to `folder`; return the losses.
    """
    settings = WarmUp(
        seed=seed,
        steps=len(chats),
        batch=min(len(chats), config.batch),
        learning_rate=config.learning_rate * (LORA_FACTOR if way == "lora" else 1.0),
        optimizer="adamw",
        schedule="constant",
        lora=config.lora if way == "lora" else None,
        frozen=frozen_of(start, config) if way == "frozen" else (),
        threads=config.threads,
    )
    return warm_up(start, chats, settings, folder)


def frozen_of(start: Path, config: Adaptation) -> tuple[str, ...]:
    return config.frozen or lower_half(
        int(json.loads((start / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"])
    )
