"""--sanitize keeps the entry point of a completion and the code that it needs.

The cases were also run through evalplus.sanitize 0.3.1 (docs/explanation/benchmarks.md).
"""

import pytest

from evaluation.judging.sanitize import longest, sanitize

COMPLETION = """Sure! Here it is:

```python
from __future__ import annotations
import math

LIMIT: int = 3
a, b = 1, 2

def helper(n):
    return n + LIMIT

@decorated
def unused():
    return 1

def twice(n):
    # doubles
    return helper(n) * math.e

print(twice(2))
```

It works by doubling."""

SANITIZED = """import math
LIMIT: int = 3
def helper(n):
    return n + LIMIT
def twice(n):
    # doubles
    return helper(n) * math.e"""


def test_imports_and_dependencies_of_the_entry_point_are_kept() -> None:
    assert sanitize(COMPLETION, "twice") == SANITIZED


def test_an_unfinished_end_is_removed() -> None:
    assert (
        sanitize("def f(x):\n    return x\n\ndef g(x):\n    return (x", "f")
        == "def f(x):\n    return x"
    )


def test_the_first_of_two_definitions_stays() -> None:
    assert (
        sanitize("def f():\n    return 1\ndef f():\n    return 2", "f") == "def f():\n    return 1"
    )


def test_a_function_that_returns_nothing_is_removed() -> None:
    # Without `f` nothing would be left, so the Python stays unchanged.
    assert sanitize("x = 1\ndef f():\n    pass", "f") == "x = 1\ndef f():\n    pass"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("no code at all", "no code at all"), ("", ""), ("    import math\n  x x", "    import math")],
)
def test_text_that_is_not_python_gives_its_first_line(text: str, expected: str) -> None:
    assert longest(text) == expected
