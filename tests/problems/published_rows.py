"""A row in the shape of each published dataset, and a program that solves it.

The contents are made by hand. Keys and types are those of the dataset's card or of the code that
writes it:

- AceCode: github.com/TIGER-AI-Lab/AceCoder (e37ef2a), data/acecode_89k/generate_main_dataset.py.
- codeforces, verifiable-coding-problems-python: the cards of open-r1 on the hub, and
  github.com/huggingface/open-r1 (1416fa0), src/open_r1/rewards.py.
- Eurus-2-RL-Data, PRIME: github.com/PRIME-RL/PRIME (18ad596), training/scripts/data_prepare.py, and
  github.com/volcengine/verl (b178a3c), verl/utils/reward_score/prime_code and its tests.
- Guru: github.com/LLM360/Reasoning360 (245ec3a), data_preprocess/codegen/mbpp.py.
- ScaleBox: github.com/pengbo121/ScaleBox (158e71f), verl_compatibility.md.
- DeepCoder: github.com/rllm-org/rllm (9beb6e0), cookbooks/deepcoder/prepare_deepcoder_data.py.
- rLLM: the same, rllm/data/dataset.py and scripts/data/code_dataset.py.
- KodCode-V1: its card, and github.com/KodCode-AI/kodcode (1d3515b), demo/. The tests of its
  `online_judge` rows are a guess.
- SYNTHETIC-1: its card. SYNTHETIC-2: code that reads it, since its card shows no row.
- LiveCodeBench: github.com/LiveCodeBench/LiveCodeBench (28fef95), lcb_runner/benchmarks.
- MultiPL-E: github.com/nuprl/MultiPL-E (3fe78f1), prompts/mbpp-py-keep.jsonl.
"""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import Any

Row = dict[str, Any]
DOUBLE = "print(2 * int(input()))"
TWICE = "def twice(n):\n    return 2 * n"
MAYBE = "import sys\nfor n in sys.stdin:\n    print(2 * int(n))"
TWICE_NODES = (
    "class Solution:\n    def twice(self, node):\n"
    "        other = node\n        while other:\n            other.val = 2 * other.val\n"
    "            other = getattr(other, 'next', None)\n        return node"
)
METHOD = "class Solution:\n    def twice(self, n):\n        return 2 * n"
STDIO = [{"input": "2\n", "output": "4\n", "type": "stdin_stdout", "fn_name": None}]
LIVE = [{"input": "2", "output": "4", "testtype": "stdin"}]
AROUND = (
    "Solve the following coding problem using the programming language python:\n\n{}\n\n"
    "Now solve the problem and return the code."
)
FENCED = "```python\n{}\n```"


def packed(cases: list[Row]) -> str:
    """Return cases as LiveCodeBench packs its private tests."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(cases)))).decode()


def verl(
    truth: Any, question: str = "Double n.", ground_truth: str | None = None, **info: Any
) -> Row:
    return {
        "data_source": "taco",
        "prompt": [
            {"role": "system", "content": "Think first."},
            {
                "role": "user",
                "content": f"{question}\n\nWrite Python code to solve the problem. Present the "
                "code in \n```python\nYour code\n```\nat the end.",
            },
        ],
        "ability": "code",
        "reward_model": {"style": "rule", "ground_truth": ground_truth or json.dumps(truth)},
        "extra_info": {"split": "train", "index": 0} | info,
    }


def synthetic(info: Any, solution: str | None = DOUBLE, **more: Any) -> Row:
    return {
        "problem_id": "vcp_1",
        "source": "apps",
        "task_type": "verifiable_code",
        "prompt": AROUND.format("Double n."),
        "gold_standard_solution": solution and FENCED.format(solution),
        "verification_info": info,
        "metadata": "{'difficulty': 'easy'}",
    } | more


CODEFORCES: Row = {
    "id": "4/A",
    "contest_id": "4",
    "contest_name": "Round",
    "index": "A",
    "time_limit": 1.0,
    "memory_limit": 64.0,
    "title": "Double",
    "description": "Double n.",
    "input_format": "One number.",
    "output_format": "Its double.",
    "interaction_format": None,
    "note": None,
    "examples": [{"input": "2\n", "output": "4\n"}],
    "editorial": None,
    "rating": 800,
    "tags": ["brute force"],
    "official_tests": [
        {"input": "2\r\n", "output": "4\r\n"},
        {"input": "3\r\n", "output": "6\r\n"},
    ],
    "official_tests_complete": True,
    "input_mode": "stdio",
    "generated_checker": None,
}
CHECKED = CODEFORCES | {
    "id": "4/B",
    "generated_checker": (
        "import sys\n\n"
        "def main(input_path, output_path, submission_path):\n"
        "    with open(input_path) as f_in, open(submission_path, 'r') as f_sub:\n"
        "        n = int(f_in.readline())\n"
        "        if [line.strip() for line in f_sub] != [str(2 * n)]:\n"
        "            print(0)\n"
        "            return\n"
        "    print(1)\n\n"
        'if __name__ == "__main__":\n'
        "    main(sys.argv[1], sys.argv[2], sys.argv[3])\n"
    ),
}
SINGLE = {"fn_name": "twice", "inputs": ["2"], "outputs": ["[4]"]}
PYTEST = "def test_two():\n    assert twice(2) == 4\n"
NODES = {
    "functional": "def check(f):\n"
    "    assert is_same_list(f(list_node([1, 2])), list_node([2, 4]))\n"
    "    assert f(tree_node([1, None, 2])).val == 2\n\n\ncheck(Solution().twice)"
}
TEXT_CALLS = {"fn_name": "twice", "inputs": ["2", "5"], "outputs": ["4", "10"]}
LISTED_CALLS = {"fn_name": "twice", "inputs": [[2], [5]], "outputs": [[4], [10]]}
FUNCTIONAL = [{"input": "2", "output": "4", "testtype": "functional"}]
SIGNATURE = "class Solution:\n    def twice(self, n: int) -> int:\n        "
KODCODE: Row = {
    "version": "v1.0",
    "style": "instruct",
    "subset": "Filter",
    "question_id": "Filter_1_I",
    "question": "Write `twice(n)`.",
    "solution": TWICE,
    "test": (
        "import pytest\nfrom solution import twice\n\n"
        "def test_small():\n    assert twice(2) == 4\n\n"
        '@pytest.mark.parametrize("n, expected", [(0, 0), (5, 10)])\n'
        "def test_more(n, expected):\n    assert twice(n) == expected\n\n"
        "def test_raises():\n    with pytest.raises(TypeError) as caught:\n        twice()\n"
        "    assert 'n' in str(caught.value)\n"
    ),
    "test_info": [{"function_name": "twice"}],
    "gpt_pass_percentage": 0.8,
    "metadata": {"prompt_id": "1"},
}
LIVECODEBENCH: Row = {
    "question_title": "Double",
    "question_content": "Double n.",
    "platform": "atcoder",
    "question_id": "abc301_z",
    "contest_id": "abc301",
    "contest_date": "2023-05-13T00:00:00",
    "starter_code": "",
    "difficulty": "easy",
    "public_test_cases": json.dumps(LIVE),
    "private_test_cases": packed([{"input": "3", "output": "6", "testtype": "stdin"}]),
    "metadata": "{}",
}
MULTIPL_E: Row = {
    "name": "mbpp_700_twice",
    "language": "py",
    "prompt": 'def twice(n: int) -> int:\n    """\n\tReturn twice n, whatever n is.\n\t"""\n',
    "doctests": "keep",
    "original": "mbpp-typed/mbpp_700_twice.py",
    "prompt_terminology": "verbatim",
    "tests": (
        "def check(candidate):\n    assert candidate(2) == 4\n\n"
        "def test_check():\n    check(twice)\n\ntest_check()\n"
    ),
    "stop_tokens": ["\ndef"],
}
ACECODE: Row = {
    "id": "oss_1",
    "source": "oss",
    "question": "Write `twice(n)`.",
    "test_cases": ["assert twice(2) == 4", "assert twice(0) == 0"],
    "inferences": [
        {"model_name": "a", "completion_id": 0, "completion": FENCED.format(TWICE), "pass_rate": 1},
        {
            "model_name": "a",
            "completion_id": 1,
            "completion": FENCED.format("def twice(n):\n    return n + n"),
            "pass_rate": 1.0,
        },
        {
            "model_name": "b",
            "completion_id": 2,
            "completion": FENCED.format("def twice(n):\n    return n + 2"),
            "pass_rate": 0.5,
        },
    ],
    "context_messages": [{"content": "Write `twice(n)`.", "role": "user"}],
}
RLLM: Row = {
    "uid": "deepcoder_0",
    "index": 0,
    "question": (
        "You are an expert Python programmer. You will be given a question (problem specification) "
        "and will generate a correct Python program.\n\nDouble n.### Format: Read the inputs from "
        "stdin.\n```python\n# YOUR CODE HERE\n```\n\n### Answer: (use the provided format with "
        "backticks)\n\n"
    ),
    "ground_truth": json.dumps([LIVE[0] | {"metadata": {"func_name": None}}]),
    "data_source": "livecodebench",
    "starter_code": "",
    "metadata": "{}",
}
# name: the row, and a program that solves it
ROWS: dict[str, tuple[Row, str]] = {
    "acecode": (ACECODE, TWICE),
    "acecode v2": (
        {"id": "1", "question": "Write twice.", "source": "oss", "tests": ["assert twice(2) == 4"]},
        TWICE,
    ),
    "codeforces": (CODEFORCES, DOUBLE),
    "codeforces with a checker": (CHECKED, DOUBLE),
    "verifiable-coding": (
        {
            "source": "apps",
            "task_type": "verifiable_code",
            "in_source_id": "1",
            "problem_statement": AROUND.format("Double n."),
            "gold_standard_solution": FENCED.format(DOUBLE),
            "problem_id": "vcp_2",
            "metadata": {"difficulty": "easy"},
            "verification_info": {"language": "python", "test_cases": STDIO},
        },
        DOUBLE,
    ),
    "synthetic-1": (synthetic(repr({"language": "python", "test_cases": STDIO})), DOUBLE),
    "synthetic-1 function": (
        synthetic(
            json.dumps(
                {
                    "language": "python",
                    "test_cases": [
                        {"fn_name": "twice", "input": [2], "output": [4], "type": "function_call"}
                    ],
                }
            ),
            TWICE,
        ),
        TWICE,
    ),
    "synthetic-2": (
        synthetic(
            json.dumps({"dataset_type": "taco", "ground_truth": json.dumps(LISTED_CALLS)}), None
        ),
        TWICE,
    ),
    "synthetic-2 base": (
        synthetic(
            json.dumps(
                {"style": "rule", "test_cases": json.dumps({"inputs": ["2\n"], "outputs": ["4\n"]})}
            ),
            None,
        ),
        DOUBLE,
    ),
    "eurus": (verl({"inputs": ["2\n", "3\n"], "outputs": ["4\n", "6\n"]}), DOUBLE),
    "prime function": (verl(TEXT_CALLS), TWICE),
    "prime with a list as result": (verl(SINGLE), "def twice(n):\n    return [2 * n]"),
    "prime with a result in a list": (verl(SINGLE), TWICE),
    "more outputs than inputs": (verl({"inputs": ["2\n", None], "outputs": ["4", "", "9"]}), MAYBE),
    "verl asserts": (verl({"fn_name": "twice", "assert_case": ["assert twice(2) == 4"]}), TWICE),
    "verl pytest": (verl(None, ground_truth=PYTEST), TWICE),
    "guru": (
        verl({"functional": "import math\n\nassert twice(2) == 4\nassert twice(-1) == -2\n"})
        | {"ability": "codegen"},
        TWICE,
    ),
    "guru with a function that checks": (
        verl(
            {
                "functional": "def check_twice():\n    assert twice(2) == 4\n\n"
                "if __name__ == '__main__':\n    check_twice()\n"
            }
        ),
        TWICE,
    ),
    "scalebox": (
        verl({"input": [[2]], "output": [[4]], "fn_name": "twice", "type": "function_call"})
        | {"prompt": AROUND.format("Double n."), "solutions": [FENCED.format(TWICE)]},
        TWICE,
    ),
    "rllm verl": (verl(STDIO, reference=FENCED.format(DOUBLE)), DOUBLE),
    "rllm": (RLLM, DOUBLE),
    "rllm leetcode": (
        RLLM
        | {
            "ground_truth": json.dumps(
                {"functional": "def check(f):\n    assert f(n=2) == 4\n\n\ncheck(Solution().twice)"}
            ),
            "data_source": "leetcode",
        },
        METHOD,
    ),
    "rllm kodcode": (
        RLLM
        | {
            "ground_truth": "from solution import twice\ndef test_two():\n    assert twice(2) == 4",
            "data_source": "kodcode",
        },
        TWICE,
    ),
    "rllm in extra_info": (
        {
            "data_source": "deepcoder",
            "prompt": [{"role": "user", "content": "placeholder"}],
            "reward_model": {"style": "rule", "ground_truth": None},
            "extra_info": RLLM,
        },
        DOUBLE,
    ),
    "deepcoder primeintellect": (
        {
            "problem": AROUND.format("Double n."),
            "solutions": [FENCED.format(DOUBLE)],
            "tests": json.dumps(STDIO),
        },
        DOUBLE,
    ),
    "deepcoder taco": (
        {"problem": "Twice n.", "solutions": [METHOD], "tests": json.dumps(LISTED_CALLS)},
        METHOD,
    ),
    "deepcoder nodes": (
        {"problem": "Twice each value.", "solutions": TWICE_NODES, "tests": json.dumps(NODES)},
        TWICE_NODES,
    ),
    "deepcoder lcbv5": (
        {
            "problem": "Twice n, as a method.",
            "starter_code": SIGNATURE,
            "tests": json.dumps(FUNCTIONAL),
            "metadata": {"func_name": "twice"},
        },
        METHOD,
    ),
    "kodcode": (KODCODE, TWICE),
    "kodcode online_judge": (
        {
            "style": "online_judge",
            "subset": "Taco",
            "conversation_id": "1",
            "question": "Double n.",
            "solution": DOUBLE,
            "test": json.dumps({"stdin": ["2\n"], "stdout": ["4\n"]}),
        },
        DOUBLE,
    ),
    "livecodebench": (LIVECODEBENCH, DOUBLE),
    "multipl-e": (MULTIPL_E, TWICE),
}
