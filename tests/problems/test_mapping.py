"""Mapping foreign columns to the schema; errors name the nearest column."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from problems.catalogue import add_source, pin, pinned_sources, read_sources
from problems.columns import ProblemError
from problems.reading.mapping import constant, pairs
from problems.reading.place import Place
from problems.schema import Problem
from problems.sources.registry import load
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox

ROW: dict[str, Any] = {"prompt": "Double it.", "answer": "def f(x):\n    return 2 * x", "level": 3}
CHECK = "def check(candidate):\n    assert candidate(2) == 4"
COLUMNS = {"statement": "prompt", "solutions": "answer", "tests": "cases"}


def read(
    folder: Path, row: dict[str, Any], columns: dict[str, str] | None = None, **constants: Any
) -> Problem:
    loaded = load("mine", placed(folder, row, columns, **constants))
    assert not loaded.rejected, loaded.rejected
    return loaded.problems[0]


def placed(
    folder: Path, row: dict[str, Any], columns: dict[str, str] | None = None, **constants: Any
) -> Place:
    (folder / "rows.jsonl").write_text(json.dumps(row), encoding="utf-8")
    return Place(folder / "rows.jsonl", columns=columns or COLUMNS, constants=constants)


@pytest.mark.parametrize(
    ("cases", "constants"),
    [
        (["assert f(2) == 4", "assert f(0) == 0"], {"style": "assert"}),
        ('["assert f(2) == 4"]', {"style": "assert"}),
        (["\n    assert f(2) == 4\n    assert f(3) == 6\n"], {"style": "assert"}),
        (CHECK, {"style": "assert", "entry_point": "f"}),
        ([CHECK], {"style": "assert", "entry_point": "f"}),
        ([{"args": [2], "expected": 4}], {"style": "call", "entry_point": "f"}),
        ('[{"args": [2], "expected": 4}]', {"style": "call", "entry_point": "f"}),
        (['{"args": [2], "expected": 4}'], {"style": "call", "entry_point": "f"}),
        ({"fn_name": "f", "inputs": [[2]], "outputs": [[4]]}, {}),
        ('{"fn_name": "f", "inputs": [[2]], "outputs": [4]}', {}),
    ],
)
def test_tests_in_common_forms_are_passed_by_the_reference(
    tmp_path: Path, sandbox: Sandbox, cases: Any, constants: dict[str, Any]
) -> None:
    problem = read(tmp_path, ROW | {"cases": cases}, **constants)
    assert problem.entry_point == "f"
    assert problem.extra["level"] == 3
    [report] = sandbox.run([problem.job(problem.solutions[0], "a")])
    assert report.verdict is Verdict.AC


@pytest.mark.parametrize(
    "cases",
    [
        [{"input": "1", "output": "2"}],
        {"inputs": ["1"], "outputs": ["2"]},
        [{"stdin": "1", "stdout": "2"}],
    ],
)
def test_inputs_and_outputs_become_stdio_tests(tmp_path: Path, cases: Any) -> None:
    assert read(tmp_path, ROW | {"cases": cases}, style="stdio").tests == (
        {"stdin": "1", "stdout": "2"},
    )


def test_a_row_without_an_id_is_named_by_its_content(tmp_path: Path) -> None:
    columns = COLUMNS | {"tests": "reward.cases"}
    first, other = (
        read(
            tmp_path,
            ROW | {"prompt": prompt, "reward": {"cases": [CHECK]}},
            columns,
            style="assert",
            entry_point="f",
        )
        for prompt in "ab"
    )
    assert first.problem_id != other.problem_id
    assert first.problem_id.startswith("mine/")
    assert "prompt" not in first.extra


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (COLUMNS | {"statement": "promt"}, "'promt'.*'prompt'"),
        (COLUMNS | {"tests": "cases.all"}, r"'cases\.all'"),
        (COLUMNS | {"solutions": "level"}, "solutions is a number 3"),
    ],
)
def test_a_row_that_does_not_fit_the_mapping_is_rejected(
    tmp_path: Path, columns: dict[str, str], reason: str
) -> None:
    loaded = load(
        "mine", placed(tmp_path, ROW | {"cases": [CHECK]}, columns, style="assert", entry_point="f")
    )
    assert not loaded.problems
    assert re.search(reason, loaded.rejected[0].reason)


def test_a_test_that_is_no_python_rejects_its_row(tmp_path: Path) -> None:
    row = ROW | {"cases": ["assert f(2) =="]}
    [rejected] = load("mine", placed(tmp_path, row, COLUMNS, style="assert")).rejected
    assert "a test is no Python" in rejected.reason


def test_an_unknown_schema_column_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"'statment'.*'statement'"):
        add_source(tmp_path, "mine", placed(tmp_path, ROW, {"statment": "prompt"}))


def test_column_pairs_and_constants_are_parsed() -> None:
    assert pairs(["statement=prompt", " tests = a=b"]) == {"statement": "prompt", "tests": " a=b"}
    assert [constant(text) for text in ("call", "3", '["a"]', "true", "def f(): ...")] == [
        "call",
        3,
        ["a"],
        True,
        "def f(): ...",
    ]
    with pytest.raises(ProblemError, match=r"'statement' .*OURS=THEIRS"):
        pairs(["statement"])


@pytest.mark.parametrize(
    ("name", "place", "reason"),
    [
        ("mine", Place(hub="EvalPlus/mbppplus"), "ratchet data add mbppplus"),
        ("mbpp", Place(hub="me/mine", columns={"statement": "x"}), "mbpp "),
        ("embedded", Place(hub="me/mine"), "embedded "),
        ("mine", Place(Path(__file__), "me/mine"), "source mine "),
        ("mine", Place(), "--path or --hub"),
    ],
)
def test_an_ambiguous_or_gate_evading_source_is_refused(
    tmp_path: Path, name: str, place: Place, reason: str
) -> None:
    with pytest.raises(ProblemError, match=reason):
        add_source(tmp_path, name, place)


def test_stored_sources_and_their_old_file_format_are_read(
    tmp_path: Path,
) -> None:
    place = Place(
        hub="me/mine",
        config="all",
        revision="v1",
        commit="c" * 40,
        columns=COLUMNS,
        constants={"style": "call", "tags": ["a"]},
    )
    add_source(tmp_path, "mine", place)
    add_source(tmp_path, "own", tmp_path)
    assert read_sources(tmp_path) == {"mine": place, "own": Place(tmp_path.resolve())}
    (tmp_path / "sources.json").write_text(
        '{"mbpp": null, "own": "/a/file.jsonl"}', encoding="utf-8"
    )
    assert read_sources(tmp_path) == {"mbpp": Place(), "own": Place(Path("/a/file.jsonl"))}


def test_commit_and_mapping_change_the_content_hash(tmp_path: Path) -> None:
    plain = placed(tmp_path, ROW)
    hub = [Place(hub="me/mine", commit=digit * 40) for digit in "ab"]
    contents = [
        plain.content,
        Place(plain.path).content,
        placed(tmp_path, ROW, style="call").content,
        *(place.content for place in hub),
    ]
    assert len(set(contents)) == 5
    assert Place(plain.path, columns=dict(COLUMNS)).content == plain.content


def test_pinning_a_removed_source_does_not_add_it(tmp_path: Path) -> None:
    add_source(tmp_path, "mine", Place(hub="me/mine", commit="a" * 40))
    pin(tmp_path, "gone", "b" * 40)
    pin(tmp_path, "mine", "c" * 40)
    assert (
        pinned_sources(tmp_path)
        == read_sources(tmp_path)
        == {"mine": Place(hub="me/mine", commit="c" * 40)}
    )
