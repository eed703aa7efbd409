"""Finds the running child processes of a process by a word of their command line."""

from __future__ import annotations

from contextlib import suppress

import psutil


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
