"""Helpers of every dry run: check the signature of a plugin, and run it."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from verl_jobs.config.references import (
    PluginError,
    source,
)

LENGTHS = [5, 3, 1, 4]


def takes(part: Callable[..., Any], reference: str, names: Sequence[str]) -> None:
    """Raise PluginError unless `part` accepts arguments of these names."""
    try:
        inspect.signature(part).bind(**dict.fromkeys(names))
    except TypeError as error:
        raise PluginError(
            f"{reference}: {error}; verl calls it with {', '.join(names)} by name: take these, "
            "and **_ for what you do not read"
        ) from error


def asked(reference: str, step: Callable[[], Any]) -> Any:
    """Return the result of user code.

    Raises PluginError, with the line in the user's file, for any exception.
    """
    try:
        return step()
    except PluginError:
        raise
    except Exception as error:
        own = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(source(reference))
        ]
        where, cause = f" at line {own[-1]}" if own else "", error.__cause__ or error
        raise PluginError(
            f"{reference}: its dry step raised{where} {type(cause).__name__}: {cause}"
        ) from error


def is_subclass(part: Any, reference: str, base: type) -> None:
    if not (inspect.isclass(part) and issubclass(part, base)):
        raise PluginError(
            f"{reference}: write a class that inherits from {base.__module__}.{base.__qualname__}"
        )
    if missing := sorted(getattr(part, "__abstractmethods__", ())):
        raise PluginError(
            f"{reference}: write its method {', '.join(missing)}, which {base.__qualname__} "
            "leaves to you"
        )


def _mask(lengths: list[int]) -> torch.Tensor:
    return torch.tensor([[at < length for at in range(max(lengths))] for length in lengths])


def _array(value: Any) -> Any:
    array = np.empty(1, dtype=object)
    array[0] = value
    return array


def _is_number(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.numel() == 1 and bool(torch.isfinite(value).all())
    return isinstance(value, int | float | np.number) and bool(np.isfinite(value))


def _kind(value: Any) -> str:
    return (
        f"a tensor of shape {tuple(value.shape)}"
        if isinstance(value, torch.Tensor)
        else f"{type(value).__name__}"
    )
