"""MultiPL-E's JavaScript and C++: rows made by hand in the dataset's format (the keys and texts of
dataset_builder/humaneval_to_js.py, humaneval_to_cpp.py and prepare_prompts_for_hfhub.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmarks.benchmark import Benchmark, NotMeasured
from evaluation.benchmarks.registry import load_public
from evaluation.completions import Completion
from evaluation.sampling import CompletionOutput
from problems.reading.place import Place
from sandbox.sandbox import Sandbox
from tests.evaluation.judging import judge_completions

JS: dict[str, Any] = {
    "name": "HumanEval_900_twice",
    "language": "js",
    "prompt": "//Return twice n, whatever\n// n is.\n// >>> twice(2)\n// 4\nfunction twice(n){\n",
    "doctests": "transform",
    "original": "/home/me/HumanEval_900_twice.py",
    "prompt_terminology": "reworded",
    "tests": (
        "const assert = require('node:assert');\n\n\nfunction test() {\n  let candidate = twice;\n"
        "  assert.deepEqual(candidate(2),4);\n  assert.deepEqual(candidate(-3),-6);\n}\n\ntest();"
    ),
    "stop_tokens": ["\nfunction ", "\n/*", "\n//", "\nconsole.log"],
}
CPP = JS | {
    "language": "cpp",
    "prompt": (
        "#include<assert.h>\n#include<bits/stdc++.h>\n// Return twice n, whatever\n// n is.\n"
        "// >>> twice((2))\n// (4)\nlong twice(long n) {\n"
    ),
    "tests": (
        "}\nint main() {\n    auto candidate = twice;\n    assert(candidate((2)) == (4));\n"
        "    assert(candidate((-3)) == (-6));\n}\n"
    ),
    "stop_tokens": ["\n}"],
}
ROWS = {"humaneval-js": JS, "humaneval-cpp": CPP}
PROGRAMS = {
    "humaneval-js": "function twice(n) {\n    return 2 * n;\n}",
    "humaneval-cpp": "long twice(long n) {\n    return 2 * n;\n}\nint main() { return 1; }",
}


@pytest.fixture(params=ROWS)
def benchmark_(request: pytest.FixtureRequest, tmp_path: Path) -> Benchmark:
    return opened(request.param, ROWS[request.param], tmp_path)


def opened(name: str, row: dict[str, Any], folder: Path) -> Benchmark:
    file = folder / f"{name}.jsonl"
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    benchmark = load_public(name, Place(file), folder)
    assert isinstance(benchmark, Benchmark)
    return benchmark


def test_a_base_model_gets_upstreams_prompt_and_stop_words(benchmark_: Benchmark) -> None:
    [problem] = benchmark_.problems
    row = ROWS[benchmark_.name]
    assert benchmark_.raw_prompt(problem) == row["prompt"]
    assert list(benchmark_.stop) == row["stop_tokens"]


def test_the_program_of_a_base_model_is_upstreams_text(benchmark_: Benchmark) -> None:
    row, harness = ROWS[benchmark_.name], benchmark_.harness
    [task] = harness.tasks.values()
    text = "    return 2 * n;" + "\n}" * (row["language"] == "js")
    completion = Completion(task.task_id, 0, text, whole=False)
    program = harness.program(task, completion, sanitized=False)
    [test] = harness.job(task, "base", program, "").tests
    assert f"{program}\n{test.source}" == f"{row['prompt']}{text}\n{row['tests']}"


def test_a_chat_is_asked_for_the_function_once(benchmark_: Benchmark) -> None:
    [problem] = benchmark_.problems
    [message] = benchmark_.prompt(problem)
    title = "JavaScript" if benchmark_.name.endswith("js") else "C++"
    assert f"Complete this {title} function." in message["content"]
    assert message["content"].count("Return twice n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("change", "verdict"), [("2 * n", "AC"), ("3 * n", "WA")])
def test_a_chats_function_is_judged_by_upstreams_tests(
    benchmark_: Benchmark, sandbox: Sandbox, change: str, verdict: str
) -> None:
    program = PROGRAMS[benchmark_.name].replace("2 * n", change)
    reply = f"Here:\n```{ROWS[benchmark_.name]['language']}\n{program}\n```\n"
    [sample], _ = judge_completions(benchmark_, [CompletionOutput(reply, 9, False)], sandbox)
    assert sample.verdict == verdict, sample


def test_a_row_of_another_language_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(CPP), encoding="utf-8")
    not_measured = load_public("humaneval-js", Place(file), tmp_path)
    assert isinstance(not_measured, NotMeasured)
    assert "give the rows of humaneval-js" in not_measured.reason


def test_its_tasks_are_gated(benchmark_: Benchmark) -> None:
    assert benchmark_.problems[0].gated
