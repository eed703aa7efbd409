"""The shipped simple problems: correct, graded, new, and where they are trained on."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from problems.cleaning.contamination import GatedIndex
from problems.cleaning.curation import curate
from problems.cleaning.similarity import programs
from problems.dataset.rl_parquet import write_verl
from problems.dataset.trainable import explained, trainable, untrained
from problems.embedded import compositional
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem
from problems.sources.registry import load
from problems.sources.simple import generate
from problems.syntax import shape
from problems.verification.settings import Verification
from problems.verification.verification import verify
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox

FAMILY = FamilyConfig(demonstrations=20, train=30, validation=5)


@cache
def shipped() -> tuple[Problem, ...]:
    return tuple(generate())


@cache
def embedded() -> tuple[Problem, ...]:
    return tuple(compositional.generate(FAMILY))


@pytest.mark.slow
def test_simple_problems_pass_verification(sandbox: Sandbox, tmp_path: Path) -> None:
    assert (
        verify(
            shipped(), sandbox, tmp_path / "journal.jsonl", Verification(repeats=1, mutants=4)
        ).removed
        == []
    )


def test_the_tests_reject_common_mistakes(sandbox: Sandbox) -> None:
    jobs = [
        problem.job(problem.extra["wrong"], problem.problem_id)
        for problem in shipped()
        if "wrong" in problem.extra
    ]
    verdicts = {report.job_id: report.verdict for report in sandbox.run(jobs)}
    assert len(jobs) >= 10
    assert set(verdicts.values()) <= {Verdict.WA, Verdict.RE}, verdicts


def test_no_cleaning_rule_removes_a_simple_problem() -> None:
    assert curate([*shipped(), *embedded()], []).removed == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    ["humaneval", "mbpp", "leetcode", "bigcodebench"],  # HumanEval+ and MBPP+ have their statements
)
def test_no_simple_problem_resembles_a_benchmark_task(
    source: str, data: Callable[[str], Path]
) -> None:
    assert GatedIndex(load(source, data(source)).problems).overlaps(list(shipped()), 1) == []


@pytest.mark.parametrize("problem", shipped(), ids=lambda problem: problem.problem_id)
def test_each_simple_problem_has_a_grade_tests_and_distinct_solutions(problem: Problem) -> None:
    assert [tag for tag in problem.tags if tag.startswith("grade-")] in [
        [f"grade-{grade}"] for grade in range(1, 6)
    ]
    assert len(problem.tags) >= 2
    assert len(problem.tests) >= 8
    assert problem.visible_tests == 2
    assert problem.licence == "Apache-2.0"
    assert problem.split == "train"
    assert len({shape(source) for source in programs(problem)}) == len(problem.solutions) >= 2
    assert len({repr(test) for test in problem.tests}) == len(problem.tests)


def test_a_model_from_scratch_is_not_trained_on_them(
    tmp_path: Path,
) -> None:
    with_them, without = (
        curate(problems, []).problems for problems in ([*embedded(), *shipped()], embedded())
    )
    rows = trainable(with_them, base="")
    for name, chosen in (
        ("with", rows),
        ("without", [problem for problem in without if problem.split == "train"]),
    ):
        write_verl(chosen, tmp_path / name)
    assert (tmp_path / "with").read_bytes() == (tmp_path / "without").read_bytes()
    assert random.Random(1).sample(rows, 8) == random.Random(1).sample(
        trainable(without, base=""), 8
    )
    assert untrained(with_them, base="") == {problem.problem_id for problem in shipped()}


def test_a_real_base_model_is_trained_on_them() -> None:
    problems = [*embedded(), *shipped()]
    assert {
        problem.source for problem in trainable(problems, base="Qwen/Qwen2.5-Coder-0.5B-Instruct")
    } == {"embedded", "simple"}
    assert untrained(problems, base="Qwen/Qwen2.5-Coder-0.5B-Instruct") == set()
    assert explained(0) == "0"


def derived_from(key: str, parents: Any, source: str = "augmented") -> Problem:
    return replace(
        shipped()[0], problem_id=f"{source}/{key}", source=source, extra={"parents": parents}
    )


@pytest.mark.parametrize(
    "parents",
    [
        [shipped()[0].problem_id],
        [embedded()[0].problem_id, shipped()[0].problem_id],
        ["augmented/b"],
        ["simple/gone"],
    ],
)
def test_derivatives_of_simple_problems_are_left_out_with_them(parents: list[str]) -> None:
    assert (
        trainable(
            [
                derived_from("a", parents),
                derived_from("b", ["augmented/c"]),
                derived_from("c", ["simple/gone"]),
            ],
            base="",
        )
        == []
    )


@pytest.mark.parametrize(
    "parents", [None, "simple/x", [], [7, None], ["embedded/train/x"], ["own/b", "own/a"]]
)
def test_custom_problems_are_trained_on_whatever_their_parents(parents: Any) -> None:
    own = [derived_from("a", parents, source="own"), derived_from("b", ["own/a"], source="own")]
    assert trainable([*own, *shipped()], base="") == own
