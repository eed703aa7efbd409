"""Problems survive a round trip through Parquet; invalid files are refused by name."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.columns import ProblemError
from problems.encoding import dumps, loads
from problems.schema import (
    Problem,
    from_record,
    from_row,
    problem_schema,
    read_parquet,
    set_hash,
    to_row,
    write_parquet,
)
from sandbox.protocol import Limits, UnittestTest
from sandbox.styles.source_text import literal

atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text()
    | st.binary()
)
keys = (
    st.integers()
    | st.text()
    | st.floats(allow_nan=False)
    | st.tuples(st.integers(), st.text())
    | st.frozensets(st.text())
)
plain = st.recursive(
    atoms | st.sets(keys) | st.frozensets(keys),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(keys, inner)
        | st.dictionaries(st.sampled_from(["$tuple", "$", "a"]), inner)
    ),
    max_leaves=12,
)


def toy(key: str = "1", **changes: Any) -> Problem:
    problem = Problem(
        f"toy/{key}",
        "toy",
        "Add one.",
        "call",
        ({"args": [1], "expected": 2},),
        "f",
        solutions=("def f(x): return x + 1\n",),
    )
    return dataclasses.replace(problem, **changes)


@given(plain)
def test_plain_data_keeps_its_types_in_a_round_trip(value: Any) -> None:
    back = loads(dumps(value))
    assert dumps(back) == dumps(value)
    assert repr(type(back)) == repr(type(value))
    if "nan" not in repr(value):
        assert back == value


@pytest.mark.parametrize(
    "value",
    [10**5000, float("inf"), {1: {2: (3,)}}, {"$set": [1]}, [{1}, b"\0", -0.0, "\ud800"]],
    ids=range(5),
)
def test_unusual_data_survives_a_round_trip(value: Any) -> None:
    assert loads(dumps(value)) == value


@pytest.mark.parametrize(
    "text", ['{"$tupel": [1]}', '{"$int": "zz"}', '{"$bytes": "?"}', "{", '{"$set": [[1]]}']
)
def test_a_broken_or_unknown_tag_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        loads(text)


def test_an_object_is_refused_as_data() -> None:
    with pytest.raises(TypeError, match="Limits"):
        toy(tests=({"args": [Limits()], "expected": 1},)).content_hash  # noqa: B018


problems = st.builds(
    toy,
    key=st.uuids().map(str),
    statement=st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip),
    tests=st.lists(
        st.fixed_dictionaries({"args": st.lists(plain), "expected": plain}), min_size=1, max_size=3
    ).map(tuple),
    tolerance=st.none() | st.floats(0, 1),
    tags=st.lists(st.sampled_from("abc")).map(tuple),
    extra=st.dictionaries(st.sampled_from(["release", "composition"]), plain),
    limits=st.builds(
        Limits,
        wall_s=st.floats(0.5, 9),
        memory_mb=st.integers(1, 2**20),
        total_cpu_s=st.none() | st.floats(0.5, 9),
    ),
    gated=st.booleans(),
)


def test_null_in_a_test_is_an_absent_key_unless_it_is_data() -> None:
    test = {"args": [2], "kwargs": None, "expected": None}
    record = {"problem_id": "own/1", "source": "own", "statement": "Write f.", "style": "call"}
    problem = from_record(record | {"entry_point": "f", "tests": [test]}, "here")
    assert problem.tests == ({"args": [2], "expected": None},)


@pytest.mark.slow
@settings(max_examples=20)
@given(problems)
def test_a_problem_survives_a_round_trip_through_its_row(problem: Problem) -> None:
    assert to_row(from_row(to_row(problem), "here")) == to_row(problem)


@settings(max_examples=3)
@given(sets=st.lists(problems, max_size=5, unique_by=lambda p: p.problem_id), seed=st.integers())
def test_parquet_keeps_the_set_and_its_hash_in_any_row_order(
    sets: list[Problem], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("set") / "set.parquet"
    digest = write_parquet(sets, path)
    bytes_before = path.read_bytes()
    shuffled = random.Random(seed).sample(sets, len(sets))
    assert write_parquet(shuffled, path) == digest
    assert path.read_bytes() == bytes_before
    assert set_hash(read_parquet(path)) == digest


def test_the_hash_of_a_problem_with_sets_is_stable() -> None:
    letters = toy(
        tests=({"args": [{"b", "a", "c"}], "expected": frozenset("xyz")},),
        limits=Limits(wall_s=3.0),
    )
    assert (
        letters.content_hash == "5fff612f6c4ea1bb6f3a3bb9a8eada8d7e0ced9f3b460eebecc2f0b419751b60"
    )


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.tuples(inner)
            | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            | st.frozensets(st.text(max_size=3), max_size=4)
            | st.sets(st.integers(), max_size=4)
        ),
    )
)
def test_a_literal_evaluates_to_the_same_value(value: Any) -> None:
    assert eval(literal(value), {"__builtins__": {"set": set, "frozenset": frozenset}}) == value


def test_a_literal_of_a_set_is_equal_in_every_process() -> None:
    """`repr` orders members by hashes, which differ between processes for texts."""
    program = (
        "from sandbox.styles.source_text import literal; print(literal([{'a', 'b', 'c', 'd', 'e'}, "
        "{'k': frozenset('xyz')}, (1,), set()]))"
    )
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    texts = {
        subprocess.check_output(
            [sys.executable, "-c", program], env=env | {"PYTHONHASHSEED": str(seed)}, text=True
        )
        for seed in (1, 2, 3)
    }
    assert texts == {
        "[{'a', 'b', 'c', 'd', 'e'}, {'k': frozenset({'x', 'y', 'z'})}, (1,), set()]\n"
    }


def test_every_change_of_a_problem_changes_its_hash() -> None:
    changed = [
        toy(),
        toy(statement="Add 1."),
        toy(tests=({"args": [True], "expected": 2},)),
        toy(gated=True),
        toy(limits=Limits(wall_s=4)),
    ]
    assert len({problem.content_hash for problem in changed}) == len(changed)
    assert toy(limits=Limits(wall_s=3)).content_hash == toy(limits=Limits(wall_s=3.0)).content_hash


def test_a_duplicate_id_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"'toy/1' .* 0 .* 1"):
        write_parquet([toy(), toy()], tmp_path / "set.parquet")
    assert not list(tmp_path.iterdir())


def test_an_empty_set_is_a_set(tmp_path: Path) -> None:
    write_parquet([], tmp_path / "set.parquet")
    assert read_parquet(tmp_path / "set.parquet") == []


def rows_file(path: Path, *rows: dict[str, Any], **columns: Any) -> Path:
    table = pa.Table.from_pylist(
        [to_row(toy(str(number))) | row for number, row in enumerate(rows)], schema=problem_schema()
    )
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    pq.write_table(table, path)
    return path


def test_missing_columns_are_refused_by_name(tmp_path: Path) -> None:
    path = rows_file(tmp_path / "set.parquet", {})
    pq.write_table(pq.read_table(path).drop_columns(["statement", "style"]), path)
    with pytest.raises(ProblemError, match=r"set\.parquet: row 0: .*statement, style"):
        read_parquet(path)


def test_an_unknown_column_is_kept(tmp_path: Path) -> None:
    path = rows_file(tmp_path / "set.parquet", {"extra": '{"release":2}'}, rating=[1800])
    assert read_parquet(path)[0].extra == {"release": 2, "rating": 1800}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"statement": None}, "row 1: .*statement is null"),
        ({"statement": " "}, 'row 1: .*statement .*" "'),
        ({"tests": ["{"]}, "row 1: .*tests .*JSON"),
        ({"tests": []}, r"row 1: .*tests .*\[\]"),
        (
            {"tests": ['{"args": 1, "expected": 1}']},
            r"row 1: .*tests\[0\] .*'args' .*1.*list",
        ),
        ({"tests": ['{"args": [1]}']}, r"row 1: .*tests\[0\] .*'expected'"),
        ({"style": "quiz"}, 'row 1: .*style .*"quiz".*call'),
        ({"entry_point": None}, "row 1: .*entry_point"),
        ({"visible_tests": 9}, "row 1: .*visible_tests .*9 .*1 "),
        (
            {"limits": {"wall_s": -1.0, "cpu_s": 1.0, "memory_mb": 1, "output_kb": 1}},
            "row 1: .*limits",
        ),
    ],
)
def test_a_wrong_cell_is_refused_by_file_row_and_column(
    tmp_path: Path, row: dict[str, Any], message: str
) -> None:
    with pytest.raises(ProblemError, match=rf"set\.parquet: {message}"):
        read_parquet(rows_file(tmp_path / "set.parquet", {}, row))


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = rows_file(tmp_path / "set.parquet", {})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ProblemError, match=r"set\.parquet: "):
        read_parquet(path)


def test_a_file_of_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = rows_file(tmp_path / "set.parquet", {})
    pq.write_table(
        pq.read_table(path).replace_schema_metadata({"ratchet.problems.version": "99"}), path
    )
    with pytest.raises(ProblemError, match=r"\b99\b"):
        read_parquet(path)


def test_a_record_of_plain_json_is_enough() -> None:
    record = json.loads(
        '{"problem_id": "a/1", "source": "a", "statement": "s", "style": "stdio", "tests": '
        '[{"stdin": "1", "stdout": "2"}]}'
    )
    assert from_record(record, "x").job("print(2)", "j").tests[0].stdout == "2"  # type: ignore[union-attr]


def test_total_limits_survive_a_round_trip(tmp_path: Path) -> None:
    limited = toy(problem_id="own/2", limits=Limits(total_wall_s=5, total_output_kb=9))
    write_parquet([toy(), limited], tmp_path / "a.parquet")
    assert limited in read_parquet(tmp_path / "a.parquet")


def test_comparison_and_checker_survive_a_round_trip_to_the_job(tmp_path: Path) -> None:
    checker = "def check(args, got, expected):\n    return got in expected"
    limits = Limits(processes=3, files=9)
    problems = [
        Problem(
            "own/1",
            "own",
            "Pick.",
            "call",
            ({"args": [], "expected": [1, 2]},),
            "f",
            compare="unordered",
            checker=checker,
            limits=limits,
        ),
        Problem("own/2", "own", "Test.", "unittest", ({"source": "class T: pass"},), "f"),
    ]
    write_parquet(problems, tmp_path / "a.parquet")
    picked, tested = (problem.job("", "j") for problem in read_parquet(tmp_path / "a.parquet"))
    assert (picked.compare, picked.checker, picked.limits.processes, picked.limits.files) == (
        "unordered",
        checker,
        3,
        9,
    )
    assert tested.tests == (UnittestTest("class T: pass"),)


@pytest.mark.parametrize(
    ("style", "column"),
    [("assert", {"checker": "x"}), ("stdio", {"compare": "set"}), ("call", {"compare": "tokens"})],
)
def test_a_comparison_that_does_not_fit_the_style_is_refused(
    style: str, column: dict[str, str]
) -> None:
    test = {
        "call": {"expected": 1},
        "stdio": {"stdin": "", "stdout": ""},
        "assert": {"source": ""},
    }[style]
    record = {
        "problem_id": "own/1",
        "source": "own",
        "statement": "s",
        "style": style,
        "tests": [test],
        "entry_point": "f",
        **column,
    }
    with pytest.raises(ProblemError, match=f"(compare|checker) .*{style}"):
        from_record(record, "file: row 0")
