"""Arguments and options of `ratchet evaluate`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Form(StrEnum):
    auto = "auto"
    chat = "chat"
    base = "base"


CheckpointArgument = Annotated[
    str | None,
    typer.Argument(
        help="A checkpoint, a version (`ratchet registry` lists them), or a Hugging Face folder."
    ),
]
BenchmarkOption = Annotated[
    str | None, typer.Option(help="Only this benchmark: humaneval, humaneval+, mbpp+, ...")
]
CompletionsOption = Annotated[
    Path | None,
    typer.Option(help="Completions to judge: .jsonl, .jsonl.gz, .json, or a folder of programs."),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        help=(
            "Generate with this model: a Hugging Face folder, a hub id, or a GGUF file "
            "(gguf:PATH, package:NAME); with --endpoint its name there."
        )
    ),
]
EndpointOption = Annotated[
    str | None,
    typer.Option(help="Generate with an OpenAI-compatible server; its URL up to /v1."),
]
NOption = Annotated[
    int,
    typer.Option("-n", min=1, help="Completions for each task, with --model or --endpoint."),
]
TemperatureOption = Annotated[
    float, typer.Option(min=0.0, help="Sampling temperature; 0 is greedy decoding.")
]
TopPOption = Annotated[
    float,
    typer.Option(
        "--top-p",
        min=0.01,
        max=1.0,
        help="Nucleus sampling: sample from the most likely tokens with this total probability.",
    ),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of the sampling.")]
FormOption = Annotated[
    Form,
    typer.Option(
        help=(
            "Prompt form. base: the raw prompt with its stop words; chat: as a chat message; auto: "
            "chat if the model has a chat template."
        )
    ),
]
DataOption = Annotated[Path | None, typer.Option(help="The benchmark's data file, of any release.")]
OutOption = Annotated[
    Path | None,
    typer.Option(
        help=(
            "Write a verdict for each sample to this file, as JSON lines, and a scorecard beside "
            "it."
        )
    ),
]
SanitizeOption = Annotated[
    bool,
    typer.Option(
        "--sanitize",
        help="Extract programs like evalplus.sanitize; without it, completions run unchanged.",
    ),
]
PartialOption = Annotated[
    bool,
    typer.Option(
        "--allow-partial",
        help="Score only the tasks that have completions; the scorecard is marked as partial.",
    ),
]
KOption = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        help="k of pass@k; repeatable. Default: 1, 10 and 100, as far as n allows.",
    ),
]
