"""A problem in another language than Python: its row, its prompt, its answer and its reward."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from problems.columns import ProblemError
from problems.prompt import prompt_text
from problems.reading.own import own
from problems.schema import Problem, from_row, to_row
from rewards.composite import CompositeReward
from rewards.extraction import extract_code
from rewards.judging import judge
from sandbox.sandbox import Sandbox

ROW = {
    "problem_id": "double",
    "statement": "Print twice the number.",
    "style": "stdio",
    "language": "js",
    "tests": [{"stdin": "2", "stdout": "4"}, {"stdin": "5", "stdout": "10"}],
    "solutions": ["console.log(2 * require('fs').readFileSync(0))"],
}


def problem(**changes: object) -> Problem:
    return own("mine").convert(ROW | changes, "row 1")


def test_a_row_keeps_its_language_in_a_file() -> None:
    stored = from_row(to_row(problem()), "row 1")
    assert stored.job("", "1").language == "javascript"


@pytest.mark.parametrize("written", ["python", "Python3", None])
def test_a_row_in_python_is_as_without_a_language(written: str | None) -> None:
    assert problem(language=written).language == "python"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"language": "rust"}, "language is 'rust' with style stdio"),
        ({"language": "en"}, "rename the column"),
        ({"style": "call", "entry_point": "f", "tests": [{"expected": 1}]}, "with style call"),
        ({"limits": {"processes": 2}}, "limits.processes"),
    ],
)
def test_a_row_that_no_program_can_solve_is_refused_by_name(
    changes: dict[str, object], words: str
) -> None:
    with pytest.raises(ProblemError, match=words):
        problem(**changes)


@pytest.mark.parametrize(("language", "title"), [("js", "JavaScript"), ("c++", "C++")])
def test_the_prompt_names_the_language_and_fences_its_code(language: str, title: str) -> None:
    text = prompt_text(problem(language=language, starter_code="// here"))
    assert f"Write the program in {title}." in text
    assert f"```{'javascript' if language == 'js' else 'cpp'}\n// here" in text


@pytest.mark.parametrize(
    "answer",
    [
        "Run `node a.js`:\n```js\nlet a = 1;\n```\nIt prints\n```\n1\n```",
        "```python\nprint(1)\n```\nor\n```javascript\nlet a = 1;\n```",
        "<think>\n```js\nlet b;\n```\n</think>\n```\nlet a = 1;\n```",
        "let a = 1;\n",
    ],
)
def test_the_last_block_of_the_language_is_the_program(answer: str) -> None:
    assert extract_code(answer, language="javascript") == "let a = 1;\n"


def test_a_right_program_gets_the_whole_reward(sandbox: Sandbox) -> None:
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    task = replace(problem(), split="train")
    pairs = [(task, f"```js\n{ROW['solutions'][0]}\n```"), (task, "```js\nconsole.log(3)\n```")]
    right, wrong = CompositeReward().score_all(judge(sandbox, pairs))
    assert (right.value, right.verdict) == (1.0, "AC")
    assert wrong.value is not None
    assert wrong.value < 0
