"""Completions of a checkpoint by transformers in this process, for small models.

In: a Hugging Face folder and prompts, chats or raw texts. Out: one completion for each prompt and
draw, in the order of the prompts. Batches of prompts sorted by length run on threads; the sampling
is that of `decoding`. Not supported: weights too large for this machine, beams, top-k. For those
there is an engine (evaluation/generation/vllm_engine.py).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.sampling import CompletionOutput, OnCompletions, Progress, Prompt, Sampling
from sandbox.cores import usable_cores

if TYPE_CHECKING:
    from decoding.batch import Row
    from decoding.checkpoint import Checkpoint

BATCH = 64  # rows decoded together on a CPU; of a model that is not small, in parts
# On a GPU a batch is as large as fits: the share of the memory for its cache and logits, and the
# most rows.
GPU_SHARE, GPU_BATCH = 0.4, 1024


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
    from decoding.checkpoint import load

    if not (checkpoint / "config.json").exists():
        raise FileNotFoundError(
            f"{checkpoint}: no config.json there: a checkpoint is a Hugging Face folder with "
            "config, weights and tokenizer"
        )
    loaded = load(checkpoint)
    rows = _rows(loaded, prompts, sampling)
    completions: dict[int, CompletionOutput] = dict(known or {}) | {
        at: CompletionOutput("", 0, True) for at, row in enumerate(rows) if row.limit <= 0
    }
    order = sorted(
        (at for at, row in enumerate(rows) if row.limit > 0),
        key=lambda at: (len(rows[at].prompt), rows[at].prompt, at),
    )
    workers, threads = _workers(loaded)
    size = _batch_rows(loaded, max((len(row.prompt) + row.limit for row in rows), default=1))
    if not loaded.single_threaded:
        size = max(1, size // workers)
    batches = [
        missing
        for start in range(0, len(order), size)
        if (missing := [at for at in order[start : start + size] if at not in completions])
    ]
    at_once = min(workers, len(batches))

    def completed(batch: list[int]) -> list[tuple[int, CompletionOutput]]:
        seconds = _decode(loaded, [rows[at] for at in batch]) / (len(batch) * at_once)
        return [(at, _completion(loaded, rows[at], sampling, seconds)) for at in batch]

    with _torch_threads(threads), ThreadPoolExecutor(workers) as pool:
        for future in as_completed([pool.submit(completed, batch) for batch in batches]):
            batch_completions = future.result()
            completions.update(batch_completions)
            if on_completions:
                on_completions(batch_completions)
            if on_progress:
                on_progress(len(completions), len(rows))
    return [completions[at] for at in range(len(rows))]


def _batch_rows(checkpoint: Checkpoint, tokens: int) -> int:
    """Return how many rows of this many tokens a batch has. The same on one machine each time, so
    that a repeated generation has the same batches.
    """
    if checkpoint.model.device.type == "cpu":
        return BATCH
    import torch

    config, memory = checkpoint.model.config.get_text_config(), torch.cuda.mem_get_info()[1]
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    cached = 2 * config.num_hidden_layers * config.num_key_value_heads * width * 2  # bytes a token
    # the cache is copied while rows leave; logits in fp32, probabilities in fp64 with their sort
    row = tokens * (2 * cached + 8 * config.intermediate_size) + 32 * config.vocab_size
    return max(1, min(GPU_BATCH, int(GPU_SHARE * memory / row)))


def _rows(checkpoint: Checkpoint, prompts: Sequence[Prompt], sampling: Sampling) -> list[Row]:
    from decoding.batch import Row
    from decoding.draws import nth_seed, uniform_of
    from decoding.text import TextStream

    draws: Counter[tuple[int, ...]] = Counter()
    rows: list[Row] = []
    for ids in map(checkpoint.encode, prompts):
        limit = min(sampling.max_new_tokens, checkpoint.positions - len(ids))
        for _ in range(sampling.n):
            row = Row(ids, limit, checkpoint.ends, sampling.temperature, sampling.top_p)
            if sampling.temperature > 0:
                row.uniform = uniform_of(nth_seed(sampling.seed, draws[tuple(ids)]), ids)
                draws[tuple(ids)] += 1
            if sampling.stop:
                row.text = TextStream(checkpoint.tokenizer, sampling.stop)
            rows.append(row)
    return rows


def _decode(checkpoint: Checkpoint, rows: list[Row]) -> float:
    """Decode a batch. Return its seconds."""
    from decoding.batch import decode

    began = time.perf_counter()
    decode(checkpoint.model, checkpoint.pad, rows)
    return time.perf_counter() - began


def _completion(
    checkpoint: Checkpoint, row: Row, sampling: Sampling, seconds: float
) -> CompletionOutput:
    from decoding.text import before_stop

    tokens = row.tokens[:-1] if row.ending == "end" else row.tokens
    text = before_stop(checkpoint.decode(tokens), sampling.stop)
    return CompletionOutput(text, len(tokens), row.ending not in ("end", "stop"), seconds)


def _workers(checkpoint: Checkpoint) -> tuple[int, int]:
    """Return how many batches are decoded at once, and the threads of each.

    A batch in a thread is faster than one batch in all of them: where another process takes a core
    for a moment, all threads of an operation wait for it.
    """
    import torch

    from decoding.batch import MIN_PART

    if checkpoint.model.device.type != "cpu":
        return 1, torch.get_num_threads()
    cores = usable_cores()
    workers = cores if checkpoint.single_threaded else min(cores, BATCH // MIN_PART)
    return workers, cores // workers


@contextmanager
def _torch_threads(number: int) -> Iterator[None]:
    """Let torch use this many threads within an operation, for the duration of the block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
