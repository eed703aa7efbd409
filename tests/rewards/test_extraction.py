"""Which part of a completion counts as the program."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.extraction import extract_code

CODE = "def f():\n    return 1\n"


@pytest.mark.parametrize(
    ("answer", "program"),
    [
        (CODE, CODE),
        (f"```python\n{CODE}```", CODE),
        (f"Sure!\n```py\n{CODE}```\nThis works.", CODE),
        (f"```\n{CODE}```", CODE),
        (f"~~~python\n{CODE}~~~", CODE),
        (f"````python\n{CODE}````", CODE),
        (f"```python\nx = 0\n```\nBetter:\n```python\n{CODE}```", CODE),
        (f"```python\n{CODE}```\nIt prints:\n```\n1\n```", CODE),
        (f"```python\n{CODE}```\n```text\n1\n```", CODE),
        (f"```\n```python\n{CODE}```\n```", CODE),
        (f"```python\n```python\n{CODE}```\n```", CODE),
        (f"The signature is\n```python\ndef f():\n```\nso\n```python\n{CODE}```", CODE),
        (f"```python\n{CODE}", CODE),
        (f"```PYTHON3\r\n{CODE}```\r\n", CODE),
        ("```python\n```", ""),
        ("", ""),
        ("```javascript\nlet x\n```", "```javascript\nlet x\n```"),
        ("x = '\ud800'", "x = '\ud800'"),
        ("```python", ""),
    ],
)
def test_the_program_is_extracted(answer: str, program: str) -> None:
    assert extract_code(answer) == program


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        "```\n" * 2_500_000,
        "a" * 10_000_000,
        "```python\n" * 1_000_000,
        "`" * 10_000_000,
        "\n ```" * 2_000_000,
    ],
)
def test_ten_megabytes_are_extracted_in_time(answer: str) -> None:
    begun = time.process_time()
    extract_code(answer)
    assert time.process_time() - begun < 8.0


@given(st.text(st.sampled_from("`~pythn \n\rx="), max_size=60))
def test_any_text_can_be_extracted_from(answer: str) -> None:
    assert extract_code(answer) in answer


@given(
    st.text(alphabet=st.characters(exclude_characters="`~"), max_size=200),
    st.text(alphabet=st.characters(exclude_characters="`~\r"), max_size=200),
)
def test_prose_around_a_block_is_ignored(before: str, code: str) -> None:
    assert extract_code(f"{before}\n```python\n{code}\n```\n{before}") == f"{code}\n"
