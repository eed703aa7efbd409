"""What every dry run needs: check a plugin's signature or base class, run it, make its inputs."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from verl_jobs.config.references import PluginError, source

LENGTHS = [5, 3, 1, 4]


def check_signature(part: Callable[..., Any], reference: str, names: Sequence[str]) -> None:
    """Raise PluginError unless `part` accepts arguments of these names."""
    try:
        inspect.signature(part).bind(**dict.fromkeys(names))
    except TypeError as error:
        raise PluginError(
            f"{reference}: {error}; verl passes {', '.join(names)} by name: accept these, and **_ "
            "for those that you do not use"
        ) from error


def run_user_code(reference: str, step: Callable[[], Any]) -> Any:
    """Return the result of user code.

    Raises PluginError, with the line in the user's file, for any exception.
    """
    try:
        return step()
    except PluginError:
        raise
    except Exception as error:
        own_lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(source(reference))
        ]
        location, cause = f" at line {own_lines[-1]}" if own_lines else "", error.__cause__ or error
        raise PluginError(
            f"{reference}: the dry run failed{location}: {type(cause).__name__}: {cause}"
        ) from error


def check_subclass(part: Any, reference: str, base: type) -> None:
    if not (inspect.isclass(part) and issubclass(part, base)):
        raise PluginError(
            f"{reference}: write a class that inherits from {base.__module__}.{base.__qualname__}"
        )
    if missing := sorted(getattr(part, "__abstractmethods__", ())):
        raise PluginError(
            f"{reference}: implement {', '.join(missing)}, which {base.__qualname__} leaves "
            "abstract"
        )


def mask_of(lengths: list[int]) -> torch.Tensor:
    """Return the mask of completions of these lengths: (completions, longest)."""
    return torch.tensor([[at < length for at in range(max(lengths))] for length in lengths])


def object_array(value: Any) -> Any:
    """Return an array that holds one object, whatever it is."""
    array = np.empty(1, dtype=object)
    array[0] = value
    return array


def is_number(value: Any) -> bool:
    """Return whether it is one finite number, also as a tensor or a numpy scalar."""
    if isinstance(value, torch.Tensor):
        return value.numel() == 1 and bool(torch.isfinite(value).all())
    return isinstance(value, int | float | np.number) and bool(np.isfinite(value))


def described(value: Any) -> str:
    """Describe a value for an error: the shape of a tensor, else its type."""
    return (
        f"a tensor of shape {tuple(value.shape)}"
        if isinstance(value, torch.Tensor)
        else f"{type(value).__name__}"
    )
