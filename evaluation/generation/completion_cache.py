"""Completions on disk, one JSON line each, written as they come: a killed run repeats no request,
an equal run makes none.

In: the identity of the model, and the generation settings. Out: completions by (prompt, number of
the draw). One
file for each model and settings; greedy completions have no seed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from artifacts.hashing import hash_data
from artifacts.json_lines import JsonLines
from evaluation.sampling import CompletionOutput, Prompt, Sampling


class CacheKey(NamedTuple):
    prompt: str  # hash of the prompt
    number: int  # of the draw, counted over all rows with this prompt


class CompletionCache:
    """A cache file, open in one process at a time; a second process waits. Threads may add
    concurrently. A torn last line is removed.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], sampling: Sampling) -> None:
        random = sampling.temperature > 0
        draw_settings = {"seed": sampling.seed, "top_p": sampling.top_p} if random else {}
        settings = {
            "temperature": sampling.temperature,
            "max_new_tokens": sampling.max_new_tokens,
            "stop": list(sampling.stop),
        } | draw_settings
        self.head = {"who": dict(identity), "how": settings}
        self.path = folder / f"{hash_data(self.head)[:32]}.jsonl"
        self.completions: dict[CacheKey, CompletionOutput] = {}
        # Model and fingerprint that an endpoint reported, with counts.
        self.models: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._lines = JsonLines(self.path)

    def __enter__(self) -> CompletionCache:
        self._begun = False
        self._lines.open(self._read, "remove the line: its completion is generated again")
        if not self._begun:
            self._lines.append([self.head])
        return self

    def _read(self, row: dict[str, Any]) -> None:
        self._begun = True
        if "who" not in row:
            completion = CompletionOutput(row["text"], row["tokens"], row["cut"], row["seconds"])
            key = CacheKey(row["prompt"], row["number"])
            if self.completions.setdefault(key, completion) is completion and row.get("model"):
                self.models[row["model"]] += 1

    def add(
        self, completions: Iterable[tuple[CacheKey, CompletionOutput]], model: str = ""
    ) -> None:
        """Add completions. They are on disk when this returns."""
        with self._lock:
            fresh = [pair for pair in completions if pair[0] not in self.completions]
            model_field = {"model": model} if model else {}
            self._lines.append(
                key._asdict() | asdict(completion) | model_field for key, completion in fresh
            )
            self.completions.update(fresh)
            if model:
                self.models[model] += len(fresh)

    def __exit__(self, *_: object) -> None:
        self._lines.close()


def keys(prompts: Sequence[Prompt], sampling: Sampling) -> list[CacheKey]:
    """Return a key for each row, `sampling.n` in a row for each prompt. Equal greedy rows share one
    completion; draws are numbered.
    """
    draws: Counter[str] = Counter()
    cache_keys: list[CacheKey] = []
    for prompt in prompts:
        content = hash_data(prompt)
        for _ in range(sampling.n):
            cache_keys.append(CacheKey(content, draws[content] if sampling.temperature > 0 else 0))
            draws[content] += 1
    return cache_keys
