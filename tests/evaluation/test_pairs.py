"""Pairs for judges: files are read, each pair occurs once, seed and judge decide the order."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from evaluation.preference.contestants import Contestant, read_contestant, read_statements
from evaluation.preference.pairs import make_pairs, order
from problems.columns import ProblemError
from tests.evaluation.scorecards import sample, scorecard

TASKS = [f"t/{i}" for i in range(60)]
STATEMENTS = {task: f"Do {task}." for task in TASKS}
OLD = Contestant("old", {task: (f"old {task}",) for task in TASKS})
NEW = Contestant("new", {task: (f"new {task}",) for task in TASKS})


def test_completions_and_prompts_are_read_plain_and_gzipped(tmp_path: Path) -> None:
    rows = [
        {"task_id": "a", "completion": "x\u2028y", "prompt": "P"},
        {"task_id": "a", "solution": "z"},
        {"task_id": "b", "completion": "w"},
    ]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (tmp_path / "mine.jsonl").write_text(text, encoding="utf-8")
    (tmp_path / "mine.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("mine.jsonl", "mine.jsonl.gz"):
        assert read_contestant(tmp_path / name) == Contestant(
            "mine", {"a": ("x\u2028y", "z"), "b": ("w",)}, {"a": "P"}
        )


def test_a_scorecard_is_a_contestant_named_after_its_checkpoint(tmp_path: Path) -> None:
    samples = (
        sample("a", sample=1, completion="second"),
        sample("a", completion="first"),
    )
    scorecard("chain-0003", samples, prompts={"a": "Do a."}).write(tmp_path / "card.json")
    assert read_contestant(tmp_path / "card.json") == Contestant(
        "chain-0003", {"a": ("first", "second")}, {"a": "Do a."}
    )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"task_id": "a", "completion": "x"}\n{"task', "line 2: invalid JSON"),
        (
            "a.jsonl",
            '{"task_id": "a", "text": "x"}\n',
            "line 1.*'solution'.*'completion'",
        ),
        ("a.jsonl", "\n", "no completions in it"),
        ("a.json", '{"samples": []}', "scorecard"),
    ],
)
def test_an_unreadable_row_is_reported_with_file_and_line(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ProblemError, match=f"{name}.*{message}"):
        read_contestant(tmp_path / name)


def test_statements_come_from_rows(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"task_id": "a", "prompt": "Do a."}\n')
    assert read_statements(tmp_path / "tasks.jsonl") == {"a": "Do a."}


def test_two_texts_meet_once_per_task_and_equal_texts_never() -> None:
    one = Contestant("one", {"a": ("x", "y", "same "), "b": ("x",)})
    other = Contestant("other", {"a": ("y", "x", "same"), "b": ("z",)})
    pairs, same = make_pairs([one, other], {"a": "A", "b": "B"}, seed=0)
    assert same == 1
    assert sorted((p.problem_id, {p.first, p.second} == {"x", "y"}) for p in pairs) == [
        ("a", True),
        ("b", False),
    ]


def test_contestants_that_cannot_be_compared_are_refused() -> None:
    for contestants, statements, message in (
        ([OLD, OLD], STATEMENTS, "the same name"),
        ([OLD, Contestant("other", {"z": ("x",)})], STATEMENTS, "no task in common"),
        ([OLD, NEW], {}, "t/0"),
    ):
        with pytest.raises(ProblemError, match=message):
            make_pairs(contestants, statements, seed=0)


def test_sides_and_order_follow_the_seed_and_differ_between_judges() -> None:
    pairs, _ = make_pairs([OLD, NEW], STATEMENTS, seed=7)
    assert (
        order(pairs, 7, "ann") == order(list(reversed(pairs)), 7, "ann") != order(pairs, 7, "bob")
    )
    sides = {
        judge: [pair.sides(7, judge)[0] == pair.first for pair in pairs] for judge in ("ann", "bob")
    }
    assert sides["ann"] != sides["bob"]
    assert all(15 <= sum(on_left) <= 45 for on_left in sides.values())


def test_the_winner_does_not_depend_on_the_side() -> None:
    pair = make_pairs([OLD, NEW], STATEMENTS, seed=0)[0][0]
    assert pair.winner(pair.first, "left") == pair.winner(pair.second, "right") == "old"
    assert pair.winner(pair.second, "left") == "new"
    assert pair.winner(pair.first, "tie") == "tie"


def test_the_seed_decides_which_pairs_are_sampled() -> None:
    pairs = [
        {pair.problem_id for pair in make_pairs([OLD, NEW], STATEMENTS, seed, 10)[0]}
        for seed in (1, 1, 2)
    ]
    assert pairs[0] == pairs[1] != pairs[2]
    assert len(pairs[0]) == 10
