"""Problems written as Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from problems.columns import ProblemError
from problems.prompt import prompt_text
from problems.reading.markdown import read_markdown

CALLS = """# Second largest
Write `second(numbers)`.

## Examples
```python
assert second([3, 1, 2]) == 2  # a comment
assert second([5, 5], strict=True) == 5
```

## Notes
There are at least two numbers.
"""
STDIO = (
    "Read a number, print its double.\n\n### Example\nInput:\n```\n3\n```\nOutput\n```\n6\n```\n"
)


def written(folder: Path, text: str) -> Path:
    (folder / "problem.md").write_text(text, encoding="utf-8")
    return folder / "problem.md"


def test_asserts_on_a_function_become_visible_calls(tmp_path: Path) -> None:
    problem = read_markdown(written(tmp_path, CALLS))
    assert (problem.style, problem.entry_point, problem.visible_tests) == ("call", "second", 2)
    assert problem.tests[1] == {"args": [[5, 5]], "kwargs": {"strict": True}, "expected": 5}
    text = prompt_text(problem)
    assert "at least two numbers" in text
    assert "assert second([3, 1, 2]) == 2" in text
    assert "## Examples" not in text


def test_other_asserts_remain_asserts(tmp_path: Path) -> None:
    problem = read_markdown(
        written(tmp_path, "Roots.\n## Examples\n```python\nassert abs(root(4) - 2) < 1e-6\n```\n")
    )
    assert (problem.style, problem.entry_point) == ("assert", "root")
    assert (
        problem.tests[0]["source"]
        == "def check(candidate):\n    assert abs(candidate(4) - 2) < 1e-06\n"
    )


def test_input_and_output_pairs_become_stdio_tests(tmp_path: Path) -> None:
    problem = read_markdown(written(tmp_path, STDIO))
    assert problem.style == "stdio"
    assert problem.tests == ({"stdin": "3\n", "stdout": "6\n"},)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Do it.", "examples"),
        ("Do it.\n## Examples\nnone yet\n", "examples"),
        ("## Examples\n```python\nassert f(1) == 2\n```\n", "before the examples"),
        ("Do it.\n## Examples\n```python\nassert f(1 == 2\n```\n", "Python"),
        (
            "Do it.\n## Examples\n```python\nassert f(1) == 2\nassert g(1) == 2\n```\n",
            "same function",
        ),
        (
            "Do it.\n## Examples\nInput\n```\n1\n```\nInput\n```\n2\n```\n",
            "Input and Output",
        ),
    ],
)
def test_an_invalid_markdown_problem_is_refused_with_its_file(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(ProblemError, match=reason) as error:
        read_markdown(written(tmp_path, text))
    assert "problem.md" in str(error.value)


def test_a_missing_markdown_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.md"):
        read_markdown(tmp_path / "none.md")
