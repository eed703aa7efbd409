"""Cleaning a set in parts gives the same files as the graph."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from artifacts.hashing import content_of, hash_file
from artifacts.integrity import hashes_of, read_manifest
from artifacts.portable import fetch, manifest_at
from problems.columns import ProblemError
from problems.dataset import partitioned
from problems.dataset.curated import write_curated
from problems.dataset.partitioned import Rules, clean
from problems.parallel import parallel_map
from problems.schema import Problem, read_parquet, write_parquet
from problems.sources.registry import load
from problems.verification.settings import Verification
from problems.verification.verification import VerifiedProblems, verify
from sandbox.sandbox import Sandbox, SandboxConfig
from tests.problems.test_curation import LONG, toy

RULES = Rules(Verification(mutants=2, repeats=1), sandbox=SandboxConfig(workers=1))


def mixed() -> list[Problem]:
    """Return problems that each cleaning stage removes some of."""

    def one(key: str, statement: str | None = None, add: int = 0, **changes: Any) -> Problem:
        source = f"def f(x):\n    total = x + {add}\n    return [total, {key!r}]\n"
        tests = tuple({"args": [x], "expected": [x + add, key]} for x in (1, 2))
        return toy(key, statement, source, tests=tests, **changes)

    plain = [
        one(f"p{number}", f"Number {number * 7919}: add {number} to x and say p{number}.", number)
        for number in range(30)
    ]
    copies = [one(f"q{number}", plain[number].statement.upper(), number) for number in (3, 11)]
    guards = [one("g1", LONG, 3, gated=True), one("g2", plain[5].statement, 4, gated=True)]
    wrong = [
        toy(
            "wrong",
            "Now say something wrong.",
            "def f(x): return 0",
            tests=({"args": [1], "expected": 1},),
        )
    ]
    refused = [
        one("secret", "Write to jane.doe@corp-mail.de."),
        one("unlicensed", "Say whose it is.", licence="unknown"),
    ]
    near = [one("near", f"{LONG}, please, and then say no more about it", 8)]
    return plain + copies + guards + wrong + refused + near


def written(problems: Sequence[Problem], folder: Path, files: int) -> Path:
    folder.mkdir()
    for number in range(files):
        write_parquet(list(problems[number::files]), folder / f"in-{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, VerifiedProblems]:
    """Return the folder that the graph's stages write for the same problems."""
    folder = tmp_path_factory.mktemp("whole")
    problems = sorted(mixed(), key=lambda problem: problem.problem_id)
    gated = [problem for problem in problems if problem.gated]
    with Sandbox(RULES.sandbox) as sandbox:
        journal = tmp_path_factory.mktemp("journal") / "journal.jsonl"
        verified = verify(problems, sandbox, journal, RULES.verification)
        write_curated(verified.problems, gated, RULES.curation, [verified.stage], folder, sandbox)
    return folder, verified


@pytest.mark.slow
def test_cleaning_in_parts_gives_the_files_of_the_graph(
    whole: tuple[Path, VerifiedProblems],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, verified = whole
    monkeypatch.setattr(partitioned, "SHARD", 7)
    problems = random.Random(3).sample(mixed(), len(mixed()))
    source, out = written(problems, tmp_path / "in", 3), tmp_path / "out"
    done = clean(str(source), f"file://{out}", parallel_map, RULES, rows=4)
    expected = hashes_of(folder)
    assert {name: hash_file(out / name) for name in expected} == expected
    manifest = read_manifest(out / "manifest.json")
    assert manifest.files == expected
    assert manifest.content_hash == content_of(expected) == done.content_hash
    unverified = json.loads((out / "verified" / "removed.json").read_text())
    assert [row["problem_id"] for row in unverified] == [r.problem_id for r in verified.removed]
    removed = json.loads((out / "removed.json").read_text())
    assert {row["reason"] for row in removed} == {
        "gated",
        "overlaps a gated problem",
        "duplicate",
        "secret or personal data",
        "licence refused",
    }
    remaining = read_parquet(out / "problems.parquet")
    assert len(problems) - len(remaining) == len(unverified) + len(removed)
    assert [stage.removed_count for stage in done.stages] == [len(unverified), len(removed)]
    taken = tmp_path / "taken"
    taken.mkdir()
    fetch(f"file://{out}", manifest_at(f"file://{out}"), taken)
    assert hashes_of(taken) == expected


class Stopped(Exception):
    pass


@pytest.mark.slow
def test_a_resumed_pass_verifies_no_part_twice(
    whole: tuple[Path, VerifiedProblems], tmp_path: Path
) -> None:
    worked = list[str]()

    def stopping(work: Callable[[Any], Any], parts: Sequence[Any]) -> Iterator[Any]:
        for part in parts:
            if len(worked) == 3:
                raise Stopped
            worked.append(part)
            yield work(part)

    source = written(mixed(), tmp_path / "in", 2)
    with pytest.raises(Stopped):
        clean(str(source), str(tmp_path / "out"), stopping, RULES, rows=5)
    before = {
        path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "verified").glob("*.parquet")
    }
    again = clean(str(source), str(tmp_path / "out"), parallel_map, RULES, rows=5)
    assert len(before) == 3
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())
    assert again.content_hash == content_of(hashes_of(whole[0]))


def test_an_unreadable_row_is_removed_by_file_and_row(tmp_path: Path) -> None:
    source = written(mixed()[:6], tmp_path / "in", 1) / "in-0.parquet"
    rows = pq.read_table(source).to_pylist()
    rows[4]["statement"] = " "
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(source)), source)
    done = clean(str(source), str(tmp_path / "out"), parallel_map, RULES, rows=3)
    assert [(row.problem_id, row.reason) for row in done.stages[0].removed] == [
        (f"{source}: row 4", "cannot be read")
    ]
    assert done.stages[0].came_in == 6
    assert "column statement" in done.stages[0].removed[0].detail


def test_other_duplicate_missing_and_broken_inputs_are_refused(tmp_path: Path) -> None:
    run = partial(clean, spread=parallel_map, rules=RULES)
    one = written(mixed()[:2], tmp_path / "one", 1)
    run(str(one), str(tmp_path / "out"))
    write_parquet(mixed()[:2], one / "twice.parquet")
    with pytest.raises(ProblemError, match=r"/out"):
        run(str(one), str(tmp_path / "out"))
    with pytest.raises(ProblemError, match="'toy/p0'"):
        run(str(one), str(tmp_path / "other"))
    with pytest.raises(ProblemError, match="absent"):
        run(str(tmp_path / "absent"), str(tmp_path / "third"))
    (one / "torn.parquet").write_bytes(b"PAR1")
    with pytest.raises(ProblemError, match=r"torn\.parquet: "):
        run(str(one), str(tmp_path / "fourth"))


def rows_of(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """Return the problems as a user writes them, the third row without a statement."""
    rows = [
        {
            "id": problem.problem_id.removeprefix("toy/"),
            "statement": problem.statement,
            "style": "call",
            "entry_point": "f",
            "tests": list(problem.tests),
            "solutions": list(problem.solutions),
        }
        for problem in problems
    ]
    rows[2]["statement"] = ""
    return rows


def json_lines(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def comma_separated(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]))
        writer.writeheader()
        writer.writerows(
            row | {name: json.dumps(row[name]) for name in ("tests", "solutions")} for row in rows
        )


@pytest.mark.parametrize(("ending", "write"), [("jsonl", json_lines), ("csv", comma_separated)])
def test_other_formats_are_read_as_data_add_reads_them(
    tmp_path: Path, ending: str, write: Callable[[Path, Any], None]
) -> None:
    file = tmp_path / f"mine.{ending}"
    write(file, rows_of(mixed()[:6]))
    done = clean(str(file), str(tmp_path / "out"), parallel_map, RULES, rows=2)
    [row] = done.stages[0].removed
    assert row.problem_id.startswith(f"{file}: ")
    assert "statement" in row.detail
    assert done.stages[0].came_in == 6
    cleaned = {each.problem_id: each for each in read_parquet(tmp_path / "out/problems.parquet")}
    loaded = {each.problem_id: each for each in load("mine", file).problems}
    assert cleaned.keys() == loaded.keys()
    assert len(cleaned) == 5
    assert all(cleaned[key].tests == loaded[key].tests for key in loaded)


def test_a_file_without_a_readable_row_is_refused_by_its_first(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    json_lines(file, [{"a": 1}, {"a": 2}])
    with pytest.raises(ProblemError, match=r"mine\.jsonl: line 1: no row can be read"):
        clean(str(file), str(tmp_path / "out"), parallel_map, RULES)


def test_other_files_beside_parquet_are_left_out(tmp_path: Path) -> None:
    source = written(mixed()[:2], tmp_path / "in", 1)
    (source / "removed.json").write_text("[]", encoding="utf-8")
    done = clean(str(source), str(tmp_path / "out"), parallel_map, RULES)
    assert done.stages[0].came_in == 2
