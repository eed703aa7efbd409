"""A file of a known dataset is recognized by its rows, whatever its name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from problems.catalogue import validated
from problems.columns import ProblemError
from problems.reading.place import Place
from problems.sources.registry import recognized, source_name

FILES = {
    "mbpp": "mbpp/mbpp.jsonl",
    "mbpp_sanitized": "mbpp/sanitized-mbpp.json",
    "mbppplus": "mbppplus/MbppPlus.jsonl.gz",
    "humaneval": "humaneval/HumanEval.jsonl.gz",
    "humanevalplus": "humanevalplus/HumanEvalPlus.jsonl.gz",
    "bigcodebench": "bigcodebench/BigCodeBench.jsonl.gz",
    "leetcode": "leetcode/LeetCodeDataset-v0.3.1-test.jsonl.gz",
    "leetcode_train": "leetcode/LeetCodeDataset-v0.1.0-train.jsonl.gz",
    "codecontests": "codecontests/codecontests_300_problems.jsonl",
}


@pytest.mark.parametrize("name", FILES)
def test_a_renamed_file_becomes_its_own_source(
    data: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    folder, _, file_name = FILES[name].partition("/")
    file = data(folder) / file_name
    renamed = tmp_path / "".join(["mine", *file.suffixes[-2 if file.suffix == ".gz" else -1 :]])
    shutil.copy(file, renamed)
    assert source_name(renamed) == name


def test_the_train_file_is_refused_under_the_name_of_the_test_tasks(
    data: Callable[[str], Path],
) -> None:
    place = Place(data("leetcode") / "LeetCodeDataset-v0.1.0-train.jsonl.gz")
    with pytest.raises(ProblemError, match="`ratchet data add leetcode_train --path"):
        validated("leetcode", place)


def test_rows_of_the_schema_are_of_no_known_source(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"problem_id": "a", "statement": "x", "style": "call", "tests": []}\n')
    assert recognized(file) is None
