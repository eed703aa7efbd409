"""Which part of a completion counts as the program."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.extraction import extract_code

CODE = "def f():\n    return 1\n"
READS = "n = int(input())\nprint(n + 1)\n"
FENCED = 'def f():\n    """Add.\n\n    ```\n    f()\n    ```\n    """\n    return 1\n'
QUOTES = 'def f():\n    return """Answer in a block: ```python\n1\n"""\n'
MARKS = "BEGIN = 0\nx = [1]\nprint(x\n[BEGIN]\n)\n"
SPLITS = 'def f(text):\n    return text.split("</think>")[-1]\n'


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
        # which block: what follows the program and is no program
        (f"```python\n{CODE}```\n```python\n```", CODE),
        (f"```python\n{CODE}```\n```python\n# done\n```", CODE),
        (f"```\n{CODE}```\nThis prints:\n```\n4\n```", CODE),
        (f"```python\n{CODE}```\n```python\nprint(f())\n```", CODE),
        (f"```python\n{CODE}```\n```python\nassert 2 == 1 + 1\n```", CODE),
        (
            f"```python\n{READS}```\n```python\nimport io, sys\nsys.stdin = io.StringIO(n)\n```",
            READS,
        ),
        (f"```python\n{READS}```\nSlower:\n```python\nfor i in range(9):\n    i\n```", READS),
        # info strings
        (f"```python3.11\n{CODE}```", CODE),
        (f'```python title="f.py"\n{CODE}```', CODE),
        (f"```{{.python .numberLines}}\n{CODE}```", CODE),
        (f"```python:f.py\n{CODE}```", CODE),
        (f"```python\n{CODE}```\n```python-repl\n>>> f()\n```", CODE),
        (f"```python\n{CODE}```\n```pycon\n>>> f()\n```", CODE),
        (f"```solution.py\n{CODE}```", CODE),
        # another language counts where nothing else can be the answer
        (f"```text\n{READS}```", READS),
        (f"```python\n{READS}```\n```text\nprint(input())\n```", READS),
        # code on the line of a fence
        ("```python def f(): return 1\n```", "def f(): return 1\n"),
        (f"```{CODE}```", CODE),
        (f"```python import os\n{CODE}```", f"import os\n{CODE}"),
        (f"```python {READS}```", READS),
        ("```python def f(): return 1", "def f(): return 1\n"),
        (f"```python linenums=true\n{CODE}```", CODE),
        (f"```python\n{CODE.rstrip()}``` as above.\n```python\nf()\n```", CODE.rstrip()),
        (f"```python\n{CODE.rstrip()}```\n```text\n1\n```", CODE.rstrip()),
        # a fence after prose
        (f"Here it is: ```python\n{CODE}```", CODE),
        (f"It is `f`: ```\n{CODE}```\nIt prints 1.", CODE),
        (f"```python\nx = 0\n```\nBetter: ```python\n{CODE}```", CODE),
        (f"```python\nx = 0```\nBetter: ```python\n{CODE}```", CODE),
        (f"```python\n{CODE}```\nIt is fenced with ```python", CODE),
        (f"```python\n{QUOTES}```", QUOTES),
        # the marks of MBPP's prompt and of Code Llama
        (f"[BEGIN]\n{CODE}[DONE]\n", f"\n{CODE}\n"),
        (f"[BEGIN]\n{READS}[DONE]\n", f"\n{READS}\n"),
        (f"So:\n[BEGIN]\n{CODE.rstrip()} [DONE]\nThat is all.", CODE),
        (f"```python\n[BEGIN]\n{CODE}[DONE]\n```", f"\n{CODE}\n"),
        (f"[PYTHON]\n{CODE}[/PYTHON]\n[TESTS]\nassert f()\n[/TESTS]", CODE),
        (f"```python\n{MARKS}```", MARKS),
        # list items, quotations, docstrings
        ("1. So:\n\n   ```python\n   def f():\n       return 1\n   ```\n", CODE),
        ("- ```python\n  def f():\n      return 1\n  ```\n", CODE),
        (f"  * a\n\n     ```python\n{CODE}     ```\n", CODE),
        ("> ```python\n> def f():\n>     return 1\n> ```\n", CODE),
        (f"```python\n{FENCED}```", FENCED),
        (FENCED, FENCED),
        ("> 1. So\n>\n>    ```python\n>    def f():\n>        return 1\n>    ```\n", CODE),
        # what only seems to read the input
        (f"```python\n{READS}```\n```python\nrun(stdin=PIPE)  # input()\n```", READS),
        (f"```python\n{READS}```\n```python\nimport sys\nsys.stdin = open('a')\n```", READS),
        # prose around plain code
        ("So:\n\n    n = int(input())\n    print(n + 1)\n\nThat is all.", f"{READS}\n"),
        (f"<answer>{READS}</answer>", f"{READS}\n"),
        (f"Here it is:\n\n{CODE}", CODE),
        (f"{CODE}\nThis works, because 1 is one.\n", f"{CODE}\n"),
        (f"Import what you need.\nimport what you need\n{CODE}", CODE),
        (f"Here it is:\n{READS}That is all.", READS),
        (f"{READS}```", f"{READS}\n"),  # the prompt opened the block
        (f"Here it is:\n{READS}```\nThat is all.", f"{READS}\n"),
        ("I cannot do that", "I cannot do that"),
        # thoughts
        (f"<think>\n```python\nx = 1\n```\nNo.</think>\n```\n{CODE}```", CODE),
        (f"<think>```python\nx = 1\n```\n</think>{CODE}", CODE),
        (f"```python\nx = 1\n\nNo.\n</think>\n\n```\n{CODE}```", CODE),
        (f"[THINK]x = 1[/THINK]```python\n{CODE}```", CODE),
        (f"<think>\n```python\n{CODE}```\nBut", ""),
        (f"[THINK]```python\n{CODE}```\nBut", ""),
        (f"<thinking effort='low'>\n```python\nx = 1\n```\n</thinking>\n{CODE}", f"\n{CODE}"),
        (f"<|channel|>analysis<|message|>x = 1<|end|><|channel|>final<|message|>{CODE}", CODE),
        (f"<|channel|>analysis<|message|>\n```python\n{CODE}```\nBut", ""),
        (f"◁think▷\n```python\nx = 1\n```\n◁/think▷{CODE}", CODE),
        (f"<think/>\n```python\n{CODE}```", CODE),
        ("<think>a</think>\n```python\nx = 1\n```\n<think>\nNo\n", ""),
        (f"```python\n{SPLITS}```", SPLITS),
        (SPLITS, SPLITS),
    ],
)
def test_the_program_is_extracted(answer: str, program: str) -> None:
    assert extract_code(answer) == program


@pytest.mark.parametrize(
    ("answer", "entry_point", "program"),
    [
        (f"```python\n{CODE}```\n```python\nx = input()\n```", "f", CODE),
        (f"```python\n{CODE}```\n```python\nfrom solution import f\nf()\n```", "f", CODE),
        (f"```python\n{CODE}```\n```python\ndef test_f():\n    assert f()\n```", "f", CODE),
        (f"```python\ndef f():\n    pass\n```\nno:\n```\n{CODE}```", "f", CODE),
        (f"```python\n{CODE}```\nor\n```python\ndef f():\n    return (1", "f", CODE),
        ("```python\ndef f(:\n```\n```python\nf()\n```", "f", "def f(:\n"),
        (f"```python\n{CODE}```\nSo:\n```python\ndef f(): ...\n```", "f", CODE),
        ("Use ```def f(): return 1``` for `f`.", "f", "def f(): return 1"),
        (f"```python\n{CODE}\nThis works, because 1 is one.", "f", f"{CODE}\n"),
        ("```python\nf = lambda: 1\n```\n```python\nf()\n```", "f", "f = lambda: 1\n"),
        (f"{CODE}\nIt prints\n```\n1\n```\n", "f", f"{CODE}\n"),
        (
            "```python\nclass Solution:\n    f = 1\n```\n```python\nprint(Solution().f())\n```",
            "Solution().f",
            "class Solution:\n    f = 1\n",
        ),
        (f"```python\n{CODE}```\n```python\ng()\n```", "missing", CODE),
        # a method, a local function, or a use of the function is no definition of it
        (f"```python\n{CODE}```\n```python\nclass A:\n    def f(self): return 2\n```", "f", CODE),
        (f"```python\n{CODE}```\n```python\ndef g():\n    def f(): return 2\n```", "f", CODE),
        (f"```python\n{CODE}```\n```python\nf = cache(f)\n```", "f", CODE),
        (f"```python\n{CODE}```\n```python\nif 1:\n    f = len\n```", "f", "if 1:\n    f = len\n"),
        (
            f"```python\n{CODE}```\n```python\ndef f():\n    raise NotImplementedError\n```",
            "f",
            CODE,
        ),
        (f"```python\n{CODE}```\n```python\nimport re\n\ndef f(): ...\n```", "f", CODE),
        (f"So:\n\n    {CODE.replace(chr(10), chr(10) + '    ')}\nIt works.", "f", f"{CODE}\n"),
    ],
)
def test_the_block_that_defines_the_entry_point_counts(
    answer: str, entry_point: str, program: str
) -> None:
    assert extract_code(answer, entry_point) == program


def test_a_program_takes_what_it_needs_of_other_blocks() -> None:
    blocks = "import math\nprint(f(2))", "def g(n):\n    return h(n)", "def h(n):\n    return n"
    needs = "def f(n):\n    return math.floor(g(n))"
    answer = "\n".join(f"```python\n{code}\n```" for code in (*blocks, needs))
    assert extract_code(answer, "f") == "\n\n".join(
        ("def h(n):\n    return n", "def g(n):\n    return h(n)", "import math", f"{needs}\n")
    )


@pytest.mark.parametrize(
    "answer",
    [
        "```\n" * 125_000,
        "a " * 5_000_000,
        "```python\n" * 50_000,
        "`" * 500_000,
        "a ``` b " * 60_000,
        "a: ```python\n" * 40_000,
        "``a " * 120_000,
        "\n ```" * 100_000,
        "</think>\n" * 50_000,
        "```\n<think>\n```\n" * 25_000,
        "    - > " * 50_000,
        "x = (" * 7_000,
    ],
)
def test_time_is_linear(answer: str) -> None:
    begun = time.process_time()
    extract_code(answer)
    assert time.process_time() - begun < 4.0


@given(st.text(st.sampled_from("`~pythn \n\rx="), max_size=60))
def test_any_text_can_be_extracted_from(answer: str) -> None:
    lines = {line.strip() for line in answer.splitlines()}
    assert {line.strip() for line in extract_code(answer).splitlines()} <= lines | {""}


@given(
    st.text(alphabet=st.characters(exclude_characters="`~"), max_size=200),
    st.text(alphabet=st.characters(exclude_characters="`~\r"), max_size=200),
)
def test_prose_around_a_block_is_ignored(before: str, code: str) -> None:
    assert extract_code(f"{before}\n```python\n{code}\n```\n{before}") == f"{code}\n"
