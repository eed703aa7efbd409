"""Completions by vLLM in this process, for weights too large for evaluation/generation/decoder.py.
vLLM is optional, for GPUs.

In and out are those of `evaluation.generation.decoder.generate`. Unlike there, batches depend on
other requests, so that a tie of two tokens may differ in another run; cached completions are not
repeated.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluation.sampling import CompletionOutput, OnCompletions, Progress, Prompt, Sampling

CHUNK = 512  # completions generated before they are cached: a kill loses at most this many


def generate(
    checkpoint: Path,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    on_progress: Progress | None = None,
    *,
    known: Mapping[int, CompletionOutput] | None = None,
    on_completions: OnCompletions | None = None,
) -> list[CompletionOutput]:
    """Generate. Raises ModuleNotFoundError without vLLM; code from a checkpoint is never run."""
    from vllm import LLM, SamplingParams

    from decoding.checkpoint import encode
    from decoding.draws import nth_seed

    engine = LLM(model=str(checkpoint), trust_remote_code=False, seed=sampling.seed)
    room = int(engine.llm_engine.model_config.max_model_len)
    tokenizer = engine.get_tokenizer()
    ids = [encode(tokenizer, prompt) for prompt in prompts]
    completions = dict(known or {})
    waiting = [
        (row, row // sampling.n)
        for row in range(len(prompts) * sampling.n)
        if row not in completions
    ]
    completions |= {
        row: CompletionOutput("", 0, True) for row, at in waiting if len(ids[at]) >= room
    }
    waiting = [(row, at) for row, at in waiting if row not in completions]
    for start in range(0, len(waiting), CHUNK):
        chunk, began = waiting[start : start + CHUNK], time.perf_counter()
        params = [
            SamplingParams(
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                stop=list(sampling.stop) or None,
                seed=nth_seed(sampling.seed, row % sampling.n),
                max_tokens=min(sampling.max_new_tokens, room - len(ids[at])),
            )
            for row, at in chunk
        ]
        outputs = [
            out.outputs[0]
            for out in engine.generate(
                [{"prompt_token_ids": ids[at]} for _, at in chunk], params, use_tqdm=False
            )
        ]
        seconds = (time.perf_counter() - began) / len(chunk)
        chunk_completions = [
            (
                row,
                CompletionOutput(
                    out.text, len(out.token_ids), out.finish_reason == "length", seconds
                ),
            )
            for (row, _), out in zip(chunk, outputs, strict=True)
        ]
        completions.update(chunk_completions)
        if on_completions:
            on_completions(chunk_completions)
        if on_progress:
            on_progress(len(completions), len(prompts) * sampling.n)
    return [completions[row] for row in range(len(prompts) * sampling.n)]
