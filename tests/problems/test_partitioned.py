"""Cleaning a set in parts gives the same problems, reasons and hash as at once."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from problems.cleaning.curation import curate
from problems.columns import ProblemError
from problems.dataset.partitioned import Rules, clean
from problems.parallel import parallel_map
from problems.schema import Problem, read_parquet, set_hash, write_parquet
from problems.verification.verification import verify
from sandbox.sandbox import Sandbox, SandboxConfig
from tests.problems.test_curation import LONG, toy

RULES = Rules(sandbox=SandboxConfig(workers=1))


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
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Sandbox(RULES.sandbox) as sandbox:
        verified = verify(mixed(), sandbox, tmp_path_factory.mktemp("journal") / "journal.jsonl")
        gated = [problem for problem in mixed() if problem.gated]
        return verified, curate(verified.problems, gated, sandbox=sandbox)


@pytest.mark.slow
@pytest.mark.parametrize(("files", "rows"), [(1, 100), (3, 4)])
def test_cleaning_in_parts_equals_cleaning_at_once(
    whole: Any, tmp_path: Path, files: int, rows: int
) -> None:
    verified, curated = whole
    problems = random.Random(files).sample(mixed(), len(mixed()))
    done = clean(
        str(written(problems, tmp_path / "in", files)),
        f"file://{tmp_path}/out",
        parallel_map,
        RULES,
        rows=rows,
    )
    assert done.content_hash == set_hash(curated.problems) != set_hash([])
    remaining = [
        problem
        for path in sorted((tmp_path / "out" / "problems").glob("*.parquet"))
        for problem in read_parquet(path)
    ]
    assert (
        set_hash(remaining)
        == json.loads((tmp_path / "out" / "manifest.json").read_text())["content_hash"]
        == done.content_hash
    )
    removed = json.loads((tmp_path / "out" / "removed.json").read_text())
    expected = [dataclasses.asdict(row) for row in [*verified.removed, *curated.removed]]
    by_id: Callable[[Any], str] = lambda row: row["problem_id"]  # noqa: E731
    assert sorted(removed, key=by_id) == sorted(expected, key=by_id)
    assert {row["reason"] for row in removed} >= {
        "gated",
        "overlaps a gated problem",
        "duplicate",
        "secret or personal data",
        "licence refused",
    }
    assert (
        sum(stage.came_in - stage.went_out for stage in done.stages)
        == len(removed)
        == len(problems) - len(remaining)
    )


class Stopped(Exception):
    pass


@pytest.mark.slow
def test_a_resumed_pass_verifies_no_part_twice(tmp_path: Path) -> None:
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
    assert len(before) == 3 and all(path.stat().st_mtime_ns == at for path, at in before.items())
    assert again == clean(str(source), str(tmp_path / "other"), parallel_map, RULES, rows=5)


def test_an_unreadable_row_is_removed_by_file_and_row(tmp_path: Path) -> None:
    source = written(mixed()[:6], tmp_path / "in", 1) / "in-0.parquet"
    rows = pq.read_table(source).to_pylist()
    rows[4]["statement"] = " "
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(source)), source)
    done = clean(str(source), str(tmp_path / "out"), parallel_map, RULES, rows=3)
    assert [(row.problem_id, row.reason) for row in done.stages[0].removed] == [
        (f"{source}: row 4", "cannot be read")
    ]
    assert done.stages[0].came_in == 6 and "column statement" in done.stages[0].removed[0].detail


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
