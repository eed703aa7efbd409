"""Seconds that our decoder and `model.generate` take for the same greedy answers: `python -m
measurements.generation CHECKPOINT PROMPTS.parquet`.

The parquet has a column `prompt` with chat messages, as the training data of a run has. Prints one
row a decoder and whether the answers agree.
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
    tokenizer = AutoTokenizer.from_pretrained(checkpoint, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    texts = [
        tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        for chat in prompts
    ]
    order = sorted(range(len(texts)), key=lambda i: len(tokenizer.encode(texts[i])))
    answers = [""] * len(texts)
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
                answers[i] = tokenizer.decode(row, skip_special_tokens=True)
    return answers


def main() -> None:
    checkpoint, data = Path(sys.argv[1]), Path(sys.argv[2])
    rows = [[dict(message) for message in chat] for chat in pd.read_parquet(data)["prompt"]]
    prompts = (rows * (400 // len(rows) + 1))[:400]
    print(f"{len(prompts)} prompts, 80 new tokens at most")
    for threads in (1, 2):
        torch.set_num_threads(threads)
        started = time.perf_counter()
        ours = generate(checkpoint, prompts, Sampling(max_new_tokens=80))
        mine, started = time.perf_counter() - started, time.perf_counter()
        theirs = with_generate(checkpoint, prompts, 80)
        other = time.perf_counter() - started
        equal = sum(a.text == b for a, b in zip(ours, theirs, strict=True))
        tokens = sum(a.tokens for a in ours)
        own = f"own loop {mine:.2f} s ({tokens / mine:.0f} tokens/s)"
        print(
            f"torch threads {threads}: {own}, model.generate {other:.2f} s, equal answers "
            f"{equal} of {len(prompts)}"
        )


if __name__ == "__main__":
    main()
