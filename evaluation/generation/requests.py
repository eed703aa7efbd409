"""Requests for completions that a job on a cluster generates into the cache.

In: checkpoints with prompts and settings, written into the job's folder. Out: the identity of each
checkpoint's completions there (`CachedSource`), once all are in the cache. Folder and cache must be
readable on the node that generates.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, PositiveInt

from artifacts.atomic import write_atomic
from evaluation.sampling import Prompt, Sampling

REQUESTS, IDENTITIES = "requests.json", "identities.json"


class GenerationRequest(BaseModel):
    """Completions of one checkpoint, `sampling.n` for each prompt."""

    model_config = ConfigDict(frozen=True)

    checkpoint: Path
    form: Literal["chat", "base"]
    prompts: tuple[Prompt, ...]
    sampling: Sampling


class Requests(BaseModel):
    """The requests of one job. engine: that of the training; gpus: that one engine needs."""

    model_config = ConfigDict(frozen=True)

    engine: Literal["hf", "vllm", "sglang", "transformers"]
    gpus: PositiveInt
    cache: Path
    requests: tuple[GenerationRequest, ...]

    def write(self, folder: Path) -> None:
        write_atomic(folder / REQUESTS, self.model_dump_json())

    @classmethod
    def read(cls, folder: Path) -> Requests:
        return cls.model_validate_json((folder / REQUESTS).read_text(encoding="utf-8"))


def write_identities(folder: Path, identities: dict[str, dict[str, Any]]) -> None:
    """identities: of the completions, by the checkpoint's path."""
    write_atomic(folder / IDENTITIES, json.dumps(identities))


def read_identities(folder: Path) -> dict[str, dict[str, Any]]:
    identities: dict[str, dict[str, Any]] = json.loads(
        (folder / IDENTITIES).read_text(encoding="utf-8")
    )
    return identities
