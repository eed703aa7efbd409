"""Rows in the shapes of published datasets load without a mapping, and their tests decide."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.columns import ProblemError
from problems.encoding import decode
from problems.prompt import prompt_text
from problems.reading.cases import read_tests
from problems.reading.own import own
from problems.reading.place import Place
from problems.reading.source import LoadedRows
from problems.shapes.registry import published_record, shape_of
from problems.sources.registry import load
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox
from tests.problems.published_rows import (
    ACECODE,
    CODEFORCES,
    DOUBLE,
    FENCED,
    FUNCTIONAL,
    KODCODE,
    LIVECODEBENCH,
    MULTIPL_E,
    ROWS,
    SIGNATURE,
    STDIO,
    synthetic,
    verl,
)

LEAP = {
    ".meta/config.json": json.dumps(
        {"files": {"solution": ["leap.py"], "test": ["leap_test.py"], "example": [".meta/ex.py"]}}
    ),
    ".meta/ex.py": "def leap_year(year):\n    return year % 4 == 0\n",
    ".docs/instructions.md": "# Instructions\n\nDecide whether 4 divides the year.\n",
    "leap.py": "def leap_year(year):\n    pass\n",
    "leap_test.py": (
        "import unittest\nfrom leap import leap_year as leaps\n\n"
        "class LeapTest(unittest.TestCase):\n"
        "    def test_leap(self):\n        self.assertIs(leaps(1996), True)\n"
        "    def test_common(self):\n        self.assertIs(leaps(2015), False)\n"
    ),
}


IN_HUMANEVALS_FORM = {
    "task_id": "mine/7",
    "prompt": 'from math import pi\n\n\ndef area(r):\n    """Return the area of a circle."""\n',
    "canonical_solution": "    return pi * r**2\n",
    "test": "def check(candidate):\n    assert round(candidate(1), 2) == 3.14\n",
    "entry_point": "area",
}


def read(folder: Path, *rows: dict[str, Any]) -> LoadedRows:
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load("mine", folder / "rows.jsonl")


@pytest.mark.parametrize(
    "solution",
    [IN_HUMANEVALS_FORM["canonical_solution"], "def area(r):\n    return pi * r**2\n"],
)
def test_tasks_in_humanevals_form_are_read(tmp_path: Path, sandbox: Sandbox, solution: str) -> None:
    [problem] = read(tmp_path, IN_HUMANEVALS_FORM | {"canonical_solution": solution}).problems
    assert problem.statement == "Return the area of a circle."
    assert not problem.gated
    [report] = sandbox.run([problem.job(problem.solutions[0], "job")])
    assert report.verdict is Verdict.AC


def track(folder: Path) -> Path:
    for name, content in LEAP.items():
        file = folder / "exercises" / "practice" / "leap" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return folder


def test_published_rows_accept_a_solution_and_refuse_another(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    jobs = []
    for name, (row, program) in ROWS.items():
        loaded = read(tmp_path, row)
        assert not loaded.rejected, (name, loaded.rejected)
        [problem] = loaded.problems
        wrong = program.replace("2 *", "3 *")
        jobs += [problem.job(program, f"{name}+"), problem.job(wrong, f"{name}-")]
        jobs += [problem.job(text, f"{name}+{n}") for n, text in enumerate(problem.solutions)]
    verdicts = {report.job_id: report.verdict for report in sandbox.run(jobs)}
    assert {key for key in verdicts if "+" in key} == {
        key for key, verdict in verdicts.items() if verdict is Verdict.AC
    }


@pytest.mark.slow
def test_an_exercise_of_exercism_accepts_its_example(tmp_path: Path, sandbox: Sandbox) -> None:
    [problem] = load("exercism", track(tmp_path)).problems
    assert problem.statement.endswith("divides the year.")
    assert problem.licence == "MIT"
    jobs = [problem.job(problem.solutions[0], "a"), problem.job(LEAP["leap.py"], "b")]
    verdicts = {report.job_id: report.verdict for report in sandbox.run(jobs)}
    assert verdicts == {"a": Verdict.AC, "b": Verdict.WA}


def test_nested_parquet_loads_like_json(tmp_path: Path) -> None:
    rows = [verl({"inputs": ["2\n"], "outputs": ["4\n"]}, f"Double {n}.") for n in "ab"]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    from_parquet = load("mine", tmp_path / "train.parquet").problems
    assert from_parquet == read(tmp_path, *rows).problems
    assert len(from_parquet) == 2


def test_instructions_around_a_statement_are_left_out(tmp_path: Path) -> None:
    rows = [ROWS[name][0] for name in ("eurus", "rllm")]
    assert {problem.statement for problem in read(tmp_path, *rows).problems} == {"Double n."}


def test_unread_columns_are_kept(tmp_path: Path) -> None:
    [problem] = read(tmp_path, KODCODE).problems
    kept = {"subset": "Filter", "gpt_pass_percentage": 0.8, "shape": "kodcode"}
    assert kept.items() <= problem.extra.items()
    assert problem.licence == "CC-BY-NC-4.0"


def test_each_pytest_function_is_a_test(tmp_path: Path) -> None:
    [problem] = read(tmp_path, KODCODE).problems
    assert len(problem.tests) == 3
    assert problem.style == "assert"
    assert problem.packages == ()


def test_an_official_test_that_is_an_example_counts_once(tmp_path: Path) -> None:
    [problem] = read(tmp_path, CODEFORCES).problems
    assert problem.visible_tests == 1
    assert len(problem.tests) == 2


def test_completions_of_models_become_samples(tmp_path: Path) -> None:
    [problem] = read(tmp_path, ACECODE).problems
    assert len(problem.extra["samples"]) == 3
    assert not problem.solutions


def test_responses_to_the_same_problem_become_its_samples(tmp_path: Path) -> None:
    info = repr({"language": "python", "test_cases": STDIO})
    responses = [synthetic(info, llm_response=FENCED.format(text)) for text in (DOUBLE, "print(4)")]
    other = synthetic(info, "print(4)", llm_response=FENCED.format(DOUBLE))
    loaded = read(tmp_path, *responses, other, synthetic(info))
    [problem] = loaded.problems
    assert [text.strip() for text in problem.samples] == [DOUBLE, "print(4)"]
    assert len(loaded.rejected) == 2
    assert "'mine/vcp_1'" in loaded.rejected[0].reason


@pytest.mark.parametrize(
    ("row", "split"),
    [
        (LIVECODEBENCH, "heldout"),
        (MULTIPL_E | {"name": "HumanEval_0_has_close_elements"}, "heldout"),
        (MULTIPL_E | {"name": "mbpp_11_remove_Occ"}, "heldout"),
        (MULTIPL_E, "train"),
    ],
)
def test_benchmark_tasks_stay_gated(tmp_path: Path, row: dict[str, Any], split: str) -> None:
    [problem] = read(tmp_path, row).problems
    assert problem.split == split
    assert problem.gated == (split == "heldout")


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (KODCODE | {"test": "def test_a(tmp_path):\n    assert twice(1)"}, "tmp_path"),
        (KODCODE | {"test": "x = ("}, "'test'"),
        (CODEFORCES | {"interaction_format": "Ask."}, "interactive"),
        (CODEFORCES | {"input_mode": "file"}, "file"),
        (CODEFORCES | {"official_tests": None, "examples": []}, "official_tests"),
        (MULTIPL_E | {"language": "rb"}, "'rb'"),
        (synthetic(repr({"language": "cpp", "test_cases": STDIO})), "'cpp'"),
        (synthetic('{"ground_truth": "42"}'), "verification_info"),
        (synthetic("no object"), "verification_info"),
        (synthetic({"language": "python", "answer": "4"}), "verification_info"),
        (verl("42") | {"ability": "math"}, "'math'"),
        (verl({"inputs": ["2"], "outputs": []}), "an output for each input"),
        (verl([STDIO[0], {"input": "2"}]), "reward_model.ground_truth"),
        (verl({"fn_name": "f", "inputs": ["nan?"], "outputs": ["1"]}), "nan?"),
        (ACECODE | {"test_cases": ["assert (", "assert f(1)"]}, "test_cases"),
    ],
)
def test_an_unreadable_row_is_named_with_its_key(
    tmp_path: Path, row: dict[str, Any], named: str
) -> None:
    loaded = read(tmp_path, row, ACECODE | {"id": "good"})
    [rejected] = loaded.rejected
    assert "rows.jsonl: line 1" in rejected.row
    assert named in rejected.reason
    assert rejected.fix
    assert len(loaded.problems) == 1


INPUTS = st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=5)
CALLS = st.lists(
    st.tuples(st.lists(st.integers() | st.text(), min_size=1), st.none() | st.integers()),
    min_size=1,
    max_size=5,
)


@settings(max_examples=12)
@given(INPUTS)
def test_programs_have_the_same_tests_in_every_form(pairs: list[tuple[str, str]]) -> None:
    inputs, outputs = map(list, zip(*pairs, strict=True))
    lists = {"inputs": inputs, "outputs": outputs}
    listed = [{"input": one, "output": other, "testtype": "stdin"} for one, other in pairs]
    forms = (lists, listed, json.dumps(lists), json.dumps(listed), repr(listed))
    first, *others = (read_tests(form, "tests", "row 1")["tests"] for form in forms)
    assert all(other == first for other in others)
    assert len(first) == len(pairs)


@settings(max_examples=12)
@given(CALLS)
def test_calls_have_the_same_tests_in_every_form(pairs: list[tuple[list[Any], Any]]) -> None:
    inputs, outputs = map(list, zip(*pairs, strict=True))
    lines = ["\n".join(map(json.dumps, arguments)) for arguments in inputs]
    forms = (
        {"fn_name": "f", "inputs": inputs, "outputs": outputs},
        {"fn_name": "f", "inputs": lines, "outputs": [json.dumps(each) for each in outputs]},
        [
            {"input": one, "output": json.dumps(other), "testtype": "functional"}
            for one, other in zip(lines, outputs, strict=True)
        ],
    )
    for form in forms:
        record = read_tests(form, "tests", "row 1", name="f")
        assert record["entry_point"] == "f"
        tests = decode(record["tests"])
        assert [(test["args"], test["expected"]) for test in tests] == pairs


@settings(max_examples=12)
@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_any_value_gives_tests_or_a_named_error(value: Any) -> None:
    for written in (value, json.dumps(value), str(value)):
        with contextlib.suppress(ProblemError):
            assert read_tests(written, "tests", "row 1")["tests"]


def test_rows_in_the_columns_of_the_schema_have_no_shape() -> None:
    assert shape_of({"statement": "s", "problem": "p", "tests": []}) is None


@pytest.mark.slow
def test_a_value_of_a_wrong_type_costs_its_row_and_no_more() -> None:
    odd = [None, 0, 7, True, 1.5, "", "x", "{[1]: 2}", "[" * 3000, "9" * 5000, [], [7], {"a": 7}]
    for row, _ in ROWS.values():
        changed = [row | {key: value} for key in row for value in odd]
        truths = [{"style": "rule", "ground_truth": value} for value in odd]
        changed += [row | {"reward_model": truth} for truth in truths if "reward_model" in row]
        for each in changed:
            with contextlib.suppress(ProblemError):
                if record := published_record(each, "row 1"):
                    assert own("mine").convert(record, "row 1").tests


@pytest.mark.parametrize(
    "truth",
    [
        {"inputs": [0], "outputs": ["1"]},
        {"inputs": ["2"], "outputs": ["9" * 5000], "fn_name": "twice"},
        [{"input": "2", "output": "4", "fn_name": name} for name in ("twice", "thrice")],
        {"inputs": ["2"], "outputs": ["4"], "fn_name": "class"},
        {"functional": "def check_twice():\n    assert twice(2) == 4\n"},
        {"functional": "def check(f):\n    assert f(2) == 4\n\nf = twice\ncheck(f)"},
        "def test_two():\n    assert twice(2) == 4\nasync def test_one():\n    twice(1)",
    ],
    ids=[
        "number as input",
        "huge result",
        "two functions",
        "keyword",
        "not called",
        "alias",
        "asynchronous",
    ],
)
def test_tests_that_would_be_lost_or_changed_refuse_the_row(tmp_path: Path, truth: Any) -> None:
    loaded = read(tmp_path, verl(truth, ground_truth=truth if isinstance(truth, str) else None))
    assert not loaded.problems
    assert "rows.jsonl" in loaded.rejected[0].row


def test_all_asserts_before_the_call_of_check_are_kept() -> None:
    asserts = "def check(f):\n    assert f('\u2028', '\x0c') == 1\n    assert f(2) == 3\n"
    written = {"functional": f"{asserts}\ncheck(f)"}
    assert read_tests(written, "tests", "row 1")["tests"] == [{"source": asserts}]


def test_the_only_function_of_the_starter_code_is_called(tmp_path: Path) -> None:
    row = {"problem": "Double n.", "starter_code": SIGNATURE, "tests": FUNCTIONAL}
    assert [problem.entry_point for problem in read(tmp_path, row).problems] == ["Solution().twice"]


def test_a_caught_exception_is_no_name_of_the_solution(tmp_path: Path) -> None:
    test = "def test_two():\n    try:\n        assert twice(2) == 4\n    except ValueError as e:\n"
    loaded = read(tmp_path, verl(None, ground_truth=f"{test}        assert e, e.args\n"))
    assert [problem.entry_point for problem in loaded.problems] == ["twice"], loaded.rejected


@pytest.mark.parametrize("base", ["unittest.TestCase", "Base"])
def test_a_test_case_beside_test_functions_is_a_test(
    tmp_path: Path, sandbox: Sandbox, base: str
) -> None:
    module = (
        "import unittest\n\nclass Base(unittest.TestCase):\n    pass\n\n"
        f"class Doubling({base}):\n    def setUp(self):\n        self.n = 5\n"
        "    def test_five(self):\n        self.assertEqual(twice(self.n), 10)\n\n"
        "def test_two():\n    assert twice(2) == 4\n"
    )
    [problem] = read(tmp_path, verl(None, ground_truth=module)).problems
    programs = {"right": "return 2 * n", "wrong": "return n + 2"}
    jobs = [problem.job(f"def twice(n):\n    {body}", name) for name, body in programs.items()]
    verdicts = {report.job_id: report.verdict for report in sandbox.run(jobs)}
    assert verdicts == {"right": Verdict.AC, "wrong": Verdict.WA}


RESULT = {"inputs": [[[3, 1]], [[7, 9]]], "outputs": [[3], [9]], "fn_name": "top"}
KEYS = {"inputs": [[{"1": 5, "2": 9}], [{"3": 1}]], "outputs": [2, 3], "fn_name": "top"}
TRUTHS = {"inputs": [[[3, 1]], [[0]]], "outputs": ["True", "False"], "fn_name": "top"}
NONES = [
    {"input": "[3, 1]", "output": "(1, 3)", "fn_name": "top"},
    {"input": "[]", "output": "None", "fn_name": "top"},
    {"input": "(9, True)", "output": "(True, 9)", "fn_name": "top"},
]
COUNTS = [
    "assert Counter(top('aab')) == Counter('aa')",
    "assert math.isclose(top('b')[0] == 'b', 1)",
]


@pytest.mark.parametrize(
    ("tests", "program"),
    [
        (RESULT, "def top(a):\n    return max(a)"),
        (RESULT, "def top(a):\n    return [max(a)]"),
        (TRUTHS, "def top(a):\n    return max(a) > 2"),
        (TRUTHS, "def top(a):\n    return str(max(a) > 2)"),
        (NONES, "def top(a):\n    return (min(a), max(a)) if a else None"),
        (KEYS, "def top(a):\n    return max(a, key=a.get)"),
        (COUNTS, "def top(a):\n    return [c for c in a if a.count(c) == max(map(a.count, a))]"),
    ],
)
def test_results_are_compared_as_by_upstream(
    tests: Any, program: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    row = {"problem": "Top.", "tests": json.dumps(tests), "solutions": [FENCED.format(program)]}
    [problem] = read(tmp_path, row).problems
    [report] = sandbox.run([problem.job(program, "job")])
    assert problem.entry_point == "top"
    assert report.verdict is Verdict.AC


def test_a_checker_reads_its_files(sandbox: Sandbox, tmp_path: Path) -> None:
    checker = (
        "import sys\nfrom pathlib import Path\nn = int(Path(sys.argv[1]).read_text())\n"
        "print(int(sum(map(int, open(sys.argv[3]).read().split())) == n))\n"
    )
    test = [{"input": "5\n", "output": "1 4\n"}]
    row = CODEFORCES | {"generated_checker": checker, "examples": test, "official_tests": []}
    [problem] = read(tmp_path, row).problems
    jobs = [problem.job(f"print({a}, 2)", str(a)) for a in (3, 4)]
    verdicts = {report.job_id: report.verdict for report in sandbox.run(jobs)}
    assert verdicts == {"3": Verdict.AC, "4": Verdict.WA}


def test_parquet_structs_with_null_are_refused(tmp_path: Path) -> None:
    tests = [{"args": [1], "kwargs": {"k": 2}, "expected": 4}, {"args": [2], "kwargs": {}}]
    row = {"problem_id": "p", "statement": "g", "style": "call", "entry_point": "g", "tests": tests}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "rows.parquet")
    [rejected] = load("mine", tmp_path / "rows.parquet").rejected
    assert "column 'tests'" in rejected.reason
    assert rejected.fix == "write the tests as JSON text"


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (
            {"starter_code": "class Solution:\n    def at(self, c: str, s: str):\n"},
            "def at(self, c",
        ),
        ({"solutions": ["```python\ndef at(c, s):\n    return s.index(c)\n```"]}, "def at(c, s)"),
        ({}, "Name the function `at`."),
    ],
)
def test_the_prompt_shows_the_signature(row: dict[str, Any], shown: str, tmp_path: Path) -> None:
    case = {"input": '"b"\n"abc"', "output": "1", "testtype": "functional"}
    common = {"problem": "Look at s, and at c.", "metadata": {"func_name": "at"}}
    [problem] = read(
        tmp_path, common | {"tests": json.dumps([case]), "solutions": []} | row
    ).problems
    assert shown in prompt_text(problem)


METHOD = "class Solution:\n    def top(self, a):\n        return max(a)"


@pytest.mark.parametrize(
    "row",
    [
        {"tests": json.dumps(RESULT), "problem": "Top.", "solutions": [FENCED.format(METHOD)]},
        {
            "tests": json.dumps(RESULT),
            "statement": "Top.",
            "solutions": [METHOD],
            "problem_id": "x",
        },
    ],
)
def test_a_method_is_called_without_starter_code(
    row: dict[str, Any], sandbox: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    place = Place(tmp_path / "rows.jsonl", columns={"tests": "tests"} if "statement" in row else {})
    [problem] = load("mine", place).problems
    [report] = sandbox.run([problem.job(problem.solutions[0], "job")])
    assert problem.entry_point == "Solution().top"
    assert report.verdict is Verdict.AC
