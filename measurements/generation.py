"""Speed of Ratchet's decoder and of `model.generate` on the same greedy completions.

`python -m measurements.generation CHECKPOINT PROMPTS.parquet`. The parquet has a column `prompt`
with chat messages, like a run's training data. Prints one row per number of threads, with the
number of equal completions.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pandas as pd
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from evaluation.generation.decoder import BATCH, generate
from evaluation.sampling import Chat, Sampling


def with_generate(checkpoint: Path, prompts: list[Chat], max_new_tokens: int) -> list[str]:
    """Return greedy completions from transformers' `model.generate`."""
    tokenizer = AutoTokenizer.from_pretrained(checkpoint, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    texts = [
        tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        for chat in prompts
    ]
    order = sorted(range(len(texts)), key=lambda i: len(tokenizer.encode(texts[i])))
    completions = [""] * len(texts)
    with torch.inference_mode():
        for start in range(0, len(order), BATCH):
            at = order[start : start + BATCH]
            batch = tokenizer(
                [texts[i] for i in at],
                return_tensors="pt",
                padding=True,
                add_special_tokens=False,
                return_token_type_ids=False,
            )
            out = model.generate(**batch, max_new_tokens=max_new_tokens, do_sample=False)
            for i, row in zip(at, out[:, batch["input_ids"].shape[1] :], strict=True):
                completions[i] = tokenizer.decode(row, skip_special_tokens=True)
    return completions


def main() -> None:
    checkpoint, data = Path(sys.argv[1]), Path(sys.argv[2])
    rows = [[dict(message) for message in chat] for chat in pd.read_parquet(data)["prompt"]]
    prompts = (rows * (400 // len(rows) + 1))[:400]
    print(f"{len(prompts)} prompts, 80 new tokens at most")
    for threads in (1, 2):
        torch.set_num_threads(threads)
        started = time.perf_counter()
        ours = generate(checkpoint, prompts, Sampling(max_new_tokens=80))
        our_seconds, started = time.perf_counter() - started, time.perf_counter()
        theirs = with_generate(checkpoint, prompts, 80)
        their_seconds = time.perf_counter() - started
        equal = sum(a.text == b for a, b in zip(ours, theirs, strict=True))
        tokens = sum(a.tokens for a in ours)
        print(
            f"torch threads {threads}: ratchet {our_seconds:.2f} s "
            f"({tokens / our_seconds:.0f} tokens/s), model.generate {their_seconds:.2f} s, equal "
            f"completions {equal} of {len(prompts)}"
        )


if __name__ == "__main__":
    main()
