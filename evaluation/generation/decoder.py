"""Completions of a checkpoint: a batched decoder on transformers, for models small enough for this
process.

In: a Hugging Face folder and prompts, chats or raw texts. Out: one completion for each prompt and
draw, in the order of the prompts. `model.generate` keeps finished rows in the batch until the last
one ends; here they leave it (measured: measurements/generation.py). Not supported: weights too
large for this machine, beams, top-k. For those there is an engine
(evaluation/generation/vllm_engine.py).

verl_jobs/decoding.py is a second one, for rollouts: it returns log-probabilities and has no stop
words. The two share only the forward pass, and their packages may not import each other.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.sampling import CompletionOutput, OnCompletions, Progress, Prompt, Sampling

if TYPE_CHECKING:
    import torch

BATCH = 64  # rows decoded together
# Parameters up to which one thread per batch is fastest: the matrices are too small to share, and
# waiting threads spin.
SMALL = 20_000_000


@dataclass
class _Row:
    """One completion being generated. `uniform`: one number in [0, 1) for each token, so that a row
    does not depend on its neighbours.
    """

    index: int
    prompt: list[int]
    limit: int
    uniform: np.ndarray[Any, Any] | None
    tokens: list[int]
    ended: bool = False


def generate(
    checkpoint: Path,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    on_progress: Progress | None = None,
    *,
    known: Mapping[int, CompletionOutput] | None = None,
    on_completions: OnCompletions | None = None,
) -> list[CompletionOutput]:
    """Return completions in fp32 (bf16 on a GPU), `sampling.n` in a row for each prompt: those of
    prompt i are at i * n to i * n + n - 1.

    The same prompts, in any order, give the same completions on one machine: batches are made of
    prompts sorted by length and content, and a draw depends only on seed, prompt and its number.
    Another set of prompts may change a tie of two tokens in the last bit. A prompt that leaves no
    space within the model's positions gets an empty completion, marked as truncated.

    known: completions by their place, which are not generated again; the batches of the others stay
    the same. on_completions: called after each batch.
    Raises FileNotFoundError if the folder holds no model; code from a checkpoint is never run.
    """
    import torch

    if not (checkpoint / "config.json").exists():
        raise FileNotFoundError(
            f"{checkpoint}: no config.json there: a checkpoint is a Hugging Face folder with "
            "config, weights and tokenizer"
        )
    model, tokenizer = load(checkpoint)
    rows = _rows(encoded(tokenizer, prompts), sampling, positions_of(model))
    completions: dict[int, CompletionOutput] = dict(known or {}) | {
        row.index: CompletionOutput("", 0, True) for row in rows if row.limit <= 0
    }
    rule = _Rule(ends_of(model, tokenizer), tokenizer.pad_token_id or 0, sampling, tokenizer)
    waiting = sorted(
        (row for row in rows if row.limit > 0),
        key=lambda row: (len(row.prompt), row.prompt, row.index),
    )
    whole = [waiting[start : start + BATCH] for start in range(0, len(waiting), BATCH)]
    batches = [
        missing
        for batch in whole
        if (missing := [row for row in batch if row.index not in completions])
    ]
    workers = (
        len(os.sched_getaffinity(0))
        if model.device.type == "cpu" and model.num_parameters() <= SMALL
        else 1
    )
    with (
        _threads(1 if workers > 1 else torch.get_num_threads()),
        ThreadPoolExecutor(workers) as pool,
    ):
        at_once = min(workers, len(batches))
        futures = [pool.submit(_decode, model, batch, rule, at_once) for batch in batches]
        for future in as_completed(futures):
            batch_completions = future.result()
            completions.update(batch_completions)
            if on_completions:
                on_completions(batch_completions)
            if on_progress:
                on_progress(len(completions), len(rows))
    return [completions[row.index] for row in rows]


def load(checkpoint: Path) -> tuple[Any, Any]:
    """Return model and tokenizer of a Hugging Face folder: fp32 on a CPU, bf16 on a GPU.

    Code in a checkpoint is never run, and nothing is downloaded. Raises OSError or ValueError for
    any other folder.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    gpu = torch.cuda.is_available()
    dtype = torch.bfloat16 if gpu else torch.float32
    local = {"trust_remote_code": False, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(checkpoint, **local)
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=dtype, **local)
    return model.to("cuda" if gpu else "cpu").eval(), tokenizer


def positions_of(model: Any) -> int:
    """Return the most tokens that prompt and completion may have together."""
    return int(getattr(model.config, "max_position_embeddings", 1 << 30))


def ends_of(model: Any, tokenizer: Any) -> set[int]:
    """Return the end tokens: the generation config may name several, the tokenizer one more."""
    named = model.generation_config.eos_token_id
    listed = named if isinstance(named, list) else [named]
    return {token for token in [*listed, tokenizer.eos_token_id] if token is not None}


def encoded(tokenizer: Any, prompts: Sequence[Prompt]) -> list[list[int]]:
    """Return token ids: of a chat with the tokenizer's template, of a text with the tokenizer's
    special tokens.
    """
    texts = [
        p
        if isinstance(p, str)
        else tokenizer.apply_chat_template(p, tokenize=False, add_generation_prompt=True)
        for p in prompts
    ]
    return [
        tokenizer.encode(text, add_special_tokens=isinstance(prompt, str))
        for prompt, text in zip(prompts, texts, strict=True)
    ]


def before_stop(text: str, stop: Sequence[str]) -> str:
    """Return the text up to the first stop word."""
    return text[: min((at for word in stop if (at := text.find(word)) >= 0), default=len(text))]


@dataclass(frozen=True)
class _Rule:
    """How tokens are chosen, and when a completion ends."""

    ends: set[int]
    pad: int
    sampling: Sampling
    tokenizer: Any

    def stopped(self, tokens: list[int]) -> bool:
        """Return whether the last token completed a stop word.

        A stop word has at most as many tokens as bytes.
        """
        if not (stop := self.sampling.stop):
            return False
        reach = 1 + max(len(word.encode()) for word in stop)
        tail = self.tokenizer.decode(tokens[-reach:], skip_special_tokens=True)
        return any(word in tail for word in stop)

    def completion(self, row: _Row, seconds: float) -> CompletionOutput:
        text = before_stop(
            self.tokenizer.decode(row.tokens, skip_special_tokens=True), self.sampling.stop
        )
        return CompletionOutput(text, len(row.tokens), not row.ended, seconds)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Set torch's number of threads within an operation, for the duration of the block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _rows(encoded: list[list[int]], sampling: Sampling, positions: int) -> list[_Row]:
    draws: Counter[bytes] = Counter()
    rows: list[_Row] = []
    for ids in encoded:
        limit = min(sampling.max_new_tokens, positions - len(ids))
        for _ in range(sampling.n):
            uniform = None
            if sampling.temperature > 0 and limit > 0:
                digest = hashlib.sha256(
                    np.array([sampling.seed, *ids], np.int64).tobytes()
                ).digest()
                uniform = np.random.default_rng([*digest, draws[digest]]).random(limit)
                draws[digest] += 1
            rows.append(_Row(len(rows), ids, limit, uniform, []))
    return rows


def _decode(
    model: Any, batch: list[_Row], rule: _Rule, at_once: int
) -> list[tuple[int, CompletionOutput]]:
    """Return the rows' completions. Shared KV cache, left padding, so that the last column is each
    row's next token; a finished row leaves the batch.

    at_once: batches that share the machine, and so the time.
    """
    import torch

    began, rows = time.perf_counter(), batch
    width = max(len(row.prompt) for row in rows)
    ids = torch.tensor(
        [[rule.pad] * (width - len(row.prompt)) + row.prompt for row in rows], device=model.device
    )
    mask = torch.tensor(
        [[0] * (width - len(row.prompt)) + [1] * len(row.prompt) for row in rows],
        device=model.device,
    )
    position = (mask.cumsum(1) - 1).clamp(min=0)
    cache = None
    with torch.inference_mode():
        while rows:
            out = model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=position,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache = out.past_key_values
            choice = _choose(out.logits[:, -1].float(), rows, rule.sampling)
            stays = []
            for at, (row, token) in enumerate(zip(rows, choice.tolist(), strict=True)):
                row.ended = token in rule.ends
                if not row.ended:
                    row.tokens.append(token)
                    row.ended = rule.stopped(row.tokens)
                    if not row.ended and len(row.tokens) < row.limit:
                        stays.append(at)
            if len(stays) < len(rows):
                unfinished = torch.tensor(stays, dtype=torch.long, device=model.device)
                rows = [rows[at] for at in stays]
                if rows:
                    cache.batch_select_indices(unfinished)
                choice, mask = choice[unfinished], mask[unfinished]
                position = position[unfinished]
            ids = choice.unsqueeze(1)
            mask = torch.cat([mask, mask.new_ones(len(rows), 1)], 1)
            position = position[:, -1:] + 1
    seconds = (time.perf_counter() - began) / (len(batch) * at_once)
    return [(row.index, rule.completion(row, seconds)) for row in batch]


def _choose(logits: torch.Tensor, rows: list[_Row], sampling: Sampling) -> torch.Tensor:
    """Return the most likely token, or one drawn by inverse sampling at the row's own number."""
    import torch

    if sampling.temperature == 0:
        return logits.argmax(-1)
    chances = (logits / sampling.temperature).softmax(-1).double()
    if (
        sampling.top_p < 1
        # a token stays while those before it have less than the share (Holtzman et al. 2020,
        # arXiv:1904.09751)
    ):
        falling, order = chances.sort(-1, descending=True)
        falling[falling.cumsum(-1) - falling >= sampling.top_p] = 0.0
        chances = torch.zeros_like(chances).scatter(-1, order, falling)
    cdf = chances.cumsum(-1)
    uniform = torch.tensor(
        [row.uniform[len(row.tokens)] for row in rows if row.uniform is not None],
        dtype=torch.float64,
        device=logits.device,
    )
    return (
        torch.searchsorted(cdf, (uniform * cdf[:, -1]).unsqueeze(1), right=True)
        .squeeze(1)
        .clamp(max=logits.shape[1] - 1)
    )
