"""Runs Python in a child process, and finds the running children of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent


def python(
    *arguments: str | Path,
    text: str = "",
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run this Python with the arguments, the text as its input and additional variables (env)."""
    return subprocess.run(
        [sys.executable, *arguments],
        input=text,
        cwd=cwd,
        check=check,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
    )


def children(word: str, of: int | None = None) -> list[psutil.Process]:
    """Return the children of the process `of` (this one by default) whose command line has `word`.

    A child that ends during the search, or is a zombie, is left out and costs no other its place.
    """
    found = []
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(of).children():
            with suppress(psutil.NoSuchProcess):
                if word in " ".join(child.cmdline()):
                    found.append(child)
    return found
