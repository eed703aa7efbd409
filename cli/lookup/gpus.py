"""Parse GPUs of the command line, such as 8xH100."""

from __future__ import annotations

import re

import typer

from verl_jobs.planner.shapes import GPUS, Gpu


def gpus_of(text: str) -> tuple[int, Gpu]:
    """Return number and type of the GPUs. Raises BadParameter, which lists the known
    types."""
    match = re.fullmatch(r"(?:(\d+)\s*[xX]\s*)?([A-Za-z0-9-]+)", text.strip())
    gpu = next(
        (gpu for gpu in GPUS.values() if match and gpu.name.lower() == match.group(2).lower()), None
    )
    if match is None or gpu is None or match.group(1) == "0":
        raise typer.BadParameter(
            f"unknown GPUs {text!r}: write e.g. 8xH100, with one of {', '.join(GPUS)}"
        )
    return int(match.group(1) or 1), gpu
