"""Styles of tests, one a file: a `Style` with its test type, its keys and its attempt.

In: a problem's tests as records. Out: tests, what a worker gets of them, and their results.
"""

from __future__ import annotations

import sys

from sandbox.discovery import entries
from sandbox.styles.style import Style

STYLES = entries(sys.modules[__name__], Style, "name")
