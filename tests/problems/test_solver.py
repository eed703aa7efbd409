"""Problems without a reference are verified by samples of a model that agree, and marked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from artifacts.manifest import Manifest
from artifacts.store import Store
from problems.columns import ProblemError
from problems.dataset.card import CARD
from problems.dataset.history import history
from problems.embedded.compositional import generate
from problems.reading.place import Place
from problems.schema import Problem, write_parquet
from problems.sources.registry import load
from problems.verification import strength
from problems.verification.settings import Verification
from problems.verification.verification import VerifiedProblems, verify
from sandbox.sandbox import Sandbox
from tests.problems.published_rows import ACECODE
from tests.problems.test_card import FAMILY, written

GOOD = ("def twice(n):\n    return 2 * n", "def twice(n):\n    return n + n")
SAME = "def twice(n):\n    # the same program\n    return 2 * n"
WRONG = "def twice(n):\n    return n + 2"


def sampled(*samples: str, **changes: object) -> Problem:
    tests = tuple({"args": [n], "kwargs": {}, "expected": 2 * n} for n in (0, 1, 3, -5))
    problem = Problem(
        "toy/1", "toy", "Write twice(n), which doubles n.", "call", tests, "twice", licence="own"
    )
    return replace(problem, extra={"samples": list(samples)}, **changes)  # type: ignore[arg-type]


def verified(
    problem: Problem, sandbox: Sandbox, folder: Path, agreement: int = 2
) -> VerifiedProblems:
    config = Verification(mutants=4, repeats=1, agreement=agreement)
    return verify([problem], sandbox, folder / "journal.jsonl", config)


def test_agreeing_samples_keep_a_problem_and_their_share_is_recorded(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    problem = sampled(WRONG, GOOD[0], SAME, GOOD[1])
    [kept] = verified(problem, sandbox, tmp_path).problems
    assert kept.extra["verified_by"] == "solver"
    assert kept.agreement == 0.75
    assert kept.solutions == GOOD
    assert [kept] == verified(problem, sandbox, tmp_path).problems  # from the journal


@pytest.mark.parametrize(
    ("samples", "agreement", "reason"),
    [
        ((GOOD[0], SAME, WRONG), 2, "samples do not agree"),
        ((WRONG,), 1, "samples do not agree"),
        ((), 1, "no reference solution"),
    ],
)
def test_too_few_different_samples_remove_a_problem(
    tmp_path: Path, sandbox: Sandbox, samples: tuple[str, ...], agreement: int, reason: str
) -> None:
    [removed] = verified(sampled(*samples), sandbox, tmp_path, agreement).removed
    assert removed.reason == reason


def test_a_problem_with_a_reference_is_not_marked(tmp_path: Path, sandbox: Sandbox) -> None:
    [kept] = verified(sampled(WRONG, solutions=GOOD[:1]), sandbox, tmp_path).problems
    assert kept.agreement is None
    assert kept.solutions == GOOD[:1]


def test_no_demonstration_is_verified_by_samples(tmp_path: Path, sandbox: Sandbox) -> None:
    problem = sampled(*GOOD, split="demonstrations")
    assert verified(problem, sandbox, tmp_path).removed[0].reason == "no reference solution"


def test_tests_that_accept_an_idle_answer_are_too_weak_whatever_samples_say(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    tests = ({"source": "def check(candidate):\n    candidate(1)"},)
    problem = sampled(*GOOD, style="assert", tests=tests)
    assert verified(problem, sandbox, tmp_path).removed[0].reason == "tests too weak"


def test_a_row_of_acecode_is_verified_by_its_own_inferences(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    row = ACECODE | {"test_cases": [f"assert twice({n}) == {2 * n}" for n in (0, 1, 3, -5)]}
    (tmp_path / "train.jsonl").write_text(json.dumps(row))
    [problem] = load("acecode", tmp_path / "train.jsonl").problems
    [kept] = verified(problem, sandbox, tmp_path).problems
    assert kept.agreement == pytest.approx(2 / 3)


def test_the_card_says_how_many_problems_a_solver_verified(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    [kept] = verified(sampled(*GOOD, WRONG), sandbox, tmp_path).problems
    text = (written([kept, *generate(FAMILY)], tmp_path / "set") / CARD).read_text()
    assert "1 of these problems came without a reference" in text
    assert "0.67" in text


def test_the_history_of_a_problem_says_how_a_solver_verified_it(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    result, store = verified(sampled(*GOOD, WRONG), sandbox, tmp_path), Store(tmp_path / "home")
    with store.draft("datasets", "verified_problems") as folder:
        write_parquet(result.problems, folder / "problems.parquet")
        (folder / "removed.json").write_text("[]")
        strength.write(result.strength, folder)
        manifest = Manifest(kind="datasets", name="verified_problems", key="1", content_hash="")
        current = {manifest.name: store.publish(folder, manifest)}
    steps = history(current, (), result.problems[0])
    [line] = [step.result for step in steps if "solver" in step.result]
    assert "2 of 3 samples" in line


def test_samples_of_a_file_join_their_problems(tmp_path: Path) -> None:
    row = {key: value for key, value in ACECODE.items() if key != "inferences"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    samples = [
        {"problem_id": "mine/oss_1", "completion": f"Here:\n```python\n{GOOD[0]}\n```"},
        {"problem_id": "oss_1", "completion": GOOD[1]},
        {"problem_id": "oss_9", "completion": GOOD[1]},
        {"problem_id": "oss_1"},
    ]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(each) + "\n" for each in samples))
    place = Place(tmp_path / "rows.jsonl", samples=tmp_path / "samples.jsonl")
    loaded = load("mine", place)
    assert [text.strip() for text in loaded.problems[0].samples] == list(GOOD)
    assert ["'oss_9'" in row.reason for row in loaded.rejected] == [True, False]
    assert "line 4" in loaded.rejected[1].row
    assert "'completion'" in loaded.rejected[1].reason
    assert place.content != Place(tmp_path / "rows.jsonl").content
    assert Place.from_json(place.to_json()) == place


def test_a_file_without_samples_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ACECODE))
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(ProblemError, match="empty"):
        load("mine", Place(tmp_path / "rows.jsonl", samples=tmp_path / "none.jsonl"))
