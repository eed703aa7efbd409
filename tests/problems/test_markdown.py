"""Problems that a person writes down."""

from __future__ import annotations

from pathlib import Path

import pytest

from problems.columns import ProblemError
from problems.dataset.rl_parquet import prompt_text
from problems.sources.markdown import read_markdown

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


def test_asserts_on_a_function_become_calls_and_all_are_visible(tmp_path: Path) -> None:
    problem = read_markdown(written(tmp_path, CALLS))
    assert (problem.style, problem.entry_point, problem.visible_tests) == ("call", "second", 2)
    assert problem.tests[1] == {"args": [[5, 5]], "kwargs": {"strict": True}, "expected": 5}
    text = prompt_text(problem)
    assert (
        "at least two numbers" in text
        and "assert second([3, 1, 2]) == 2" in text
        and "## Examples" not in text
    )


def test_other_asserts_stay_asserts(tmp_path: Path) -> None:
    problem = read_markdown(
        written(tmp_path, "Roots.\n## Examples\n```python\nassert abs(root(4) - 2) < 1e-6\n```\n")
    )
    assert (problem.style, problem.entry_point) == ("assert", "root")
    assert (
        problem.tests[0]["source"]
        == "def check(candidate):\n    assert abs(candidate(4) - 2) < 1e-06\n"
    )


def test_pairs_of_input_and_output_become_runs_of_a_program(tmp_path: Path) -> None:
    problem = read_markdown(written(tmp_path, STDIO))
    assert problem.style == "stdio" and problem.tests == ({"stdin": "3\n", "stdout": "6\n"},)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Do it.", "it has no examples"),
        ("Do it.\n## Examples\nnone yet\n", "it has no examples"),
        ("## Examples\n```python\nassert f(1) == 2\n```\n", "it says nothing before the examples"),
        ("Do it.\n## Examples\n```python\nassert f(1 == 2\n```\n", "an example is no Python"),
        (
            "Do it.\n## Examples\n```python\nassert f(1) == 2\nassert g(1) == 2\n```\n",
            "do not call one function",
        ),
        (
            "Do it.\n## Examples\nInput\n```\n1\n```\nInput\n```\n2\n```\n",
            "not Input and Output in turn",
        ),
    ],
)
def test_what_cannot_be_read_names_file_and_mend(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ProblemError, match=said) as error:
        read_markdown(written(tmp_path, text))
    assert "problem.md" in str(error.value)


def test_a_file_that_is_not_there_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="give a Markdown file"):
        read_markdown(tmp_path / "none.md")
