"""Parse Python source in a process with other threads."""

from __future__ import annotations

import ast
import contextlib
import warnings

ATTEMPTS = 100


def parse(source: str | bytes) -> ast.Module:
    """Return the syntax tree of a module. Invalid escapes like "\\d" raise no warning.

    Python 3.11 keeps one recursion counter for all threads (CPython issue 106905): `ast.parse`
    fails with SystemError when another thread parses at the same moment, such as one of Ray's that
    formats a traceback. Such a failure is retried.

    Raises:
        SyntaxError: the source is not Python.
        ValueError: the source contains a null byte.
        RecursionError: the source is nested too deeply.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(ATTEMPTS):
            with contextlib.suppress(SystemError):
                return ast.parse(source)
        return ast.parse(source)
